"""How far the claims of a simulated comparison move when its performance profile is wrong.

The whole comparison is run again, capacity measurement included, with one coefficient of the
profile changed at a time, over what is plausible for it. All runs share the seed, so that what
moves is the profile alone.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from analysis.frames import load_run
from analysis.summarize import claims
from bellman.corpus.base import Corpus
from bellman.engines.base import Engine
from bellman.engines.simulated.engine import SimulatedEngine
from bellman.engines.simulated.profile import Profile
from bellman.errors import ConfigError, RunError, require
from bellman.records import write_json
from bellman.run_folder import RunFolder
from bellman.settings import Settings
from experiments import compare

AS_IT_IS = "as fitted"


@dataclass(frozen=True)
class UncertaintyStudy:
    """What the experiment is told (`study` in its YAML)."""

    factors: dict[str, list[float]]
    """Factors on a coefficient of the profile, by its name: `time.token_ms` and so on."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(len(self.factors) > 0, "study.factors", self.factors, "must name a coefficient")
        for name, factors in self.factors.items():
            valid = len(factors) > 0 and min(factors) >= 0
            require(valid, f"study.factors.{name}", factors, "must be factors of 0 or more")


def run(
    settings: Settings, corpus: Corpus, engine: Engine, folder: RunFolder, console: Console
) -> None:
    """Run the comparison for every change, and write what the claims become."""
    study, config = settings.study, settings.engine
    if not isinstance(study, UncertaintyStudy):
        raise RunError("this procedure needs a study: run it by experiment=simulator_uncertainty")
    if not isinstance(config, SimulatedEngine):
        raise RunError("only a simulated engine has a profile to change: choose engine=simulated")
    changes = [(AS_IT_IS, 1.0)]
    changes += [(name, factor) for name, factors in study.factors.items() for factor in factors]
    profiles = [changed(config.profile, name, factor) for name, factor in changes]
    quiet = Console(quiet=True)
    results: list[dict[str, Any]] = []
    for number, profile in enumerate(track(profiles, "profiles (simulated)", console=console)):
        place = RunFolder(folder.path / "profiles" / f"{number:02d}", folder.identity)
        place.path.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder.path / "config.yaml", place.path)
        with_profile = replace(config, profile=profile).create(corpus)
        compare.run(settings, corpus, with_profile, place, quiet)
        name, factor = changes[number]
        results.append({"coefficient": name, "factor": factor, "claims": found(place.path)})
    write_json({"source": engine.source, "results": results}, folder.path / "uncertainty.json")


def changed(profile: Profile, name: str, factor: float) -> Profile:
    """Return the profile with one coefficient times `factor`; raises `ConfigError`."""
    if name == AS_IT_IS:
        return profile
    group, _, field = name.partition(".")
    part: Any = getattr(profile, group, None)
    if group not in {"time", "energy"} or not hasattr(part, field):
        raise ConfigError("study.factors", name, "must be time.<coefficient> or energy.<...>")
    change: dict[str, Any] = {group: replace(part, **{field: factor * getattr(part, field)})}
    return replace(profile, **change)


def found(place: Path) -> dict[str, float | None]:
    """Return the estimate of each claim and of its companions, by name."""
    estimates: dict[str, float | None] = {}
    for claim in claims(load_run(place))["claims"]:
        estimates[claim["claim"]] = claim["estimate"]
        for companion in claim["companions"]:
            estimates[f"{claim['claim']}: {companion['name']}"] = companion["estimate"]
    return estimates
