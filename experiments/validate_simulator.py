"""The simulated engine beside measured steady states: ITL, tokens/s, watts, J/token.

Every row of a measured model is run through the simulated engine by the protocol it was measured
with. Profiles were fitted on every other row; the rest are judged. The prompt lengths of the
measured rows are not published, so that all of it is repeated with shorter and longer prompts.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.progress import track

from bellman import interruption
from bellman.build import build
from bellman.corpus.base import Corpus
from bellman.engines.base import Engine
from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.steady_states import (
    MEASURED,
    METRICS,
    Lengths,
    SteadyState,
    halves,
    read_steady_states,
    simulate,
    with_prompts,
)
from bellman.errors import ConfigError, RunError, require
from bellman.records import write_json, write_parquet
from bellman.run_folder import RunFolder
from bellman.settings import Settings

PROFILES = Path(__file__).parent.parent / "conf" / "engine" / "profile"
ELSEWHERE = "elsewhere"
"""Stands for a profile without prompt lengths of its own."""


@dataclass(frozen=True)
class ValidationStudy:
    """What the experiment is told (`study` in its YAML)."""

    profiles: list[str]
    """Files of conf/engine/profile; each is judged on the rows of its model."""
    prompt_tokens: dict[str, Any]
    """Assumed mean prompt length by task, by profile; `elsewhere` for the rest."""
    prompt_factors: list[float]
    """All prompts times this; 1 is what is judged."""
    rows: str | None = None
    """Another file of steady states in ML.ENERGY's form; all its rows are judged."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(len(self.profiles) > 0, "study.profiles", self.profiles, "must name a profile")
        require(
            1.0 in self.prompt_factors and min(self.prompt_factors) > 0,
            "study.prompt_factors",
            self.prompt_factors,
            "must contain 1 and nothing below 0",
        )

    def lengths(self, profile: str, task: str) -> Lengths:
        """Return the assumed lengths of a task's requests."""
        tasks = self.prompt_tokens.get(profile, {})
        tokens = tasks.get(task, self.prompt_tokens[ELSEWHERE])
        return Lengths({task: float(tokens)})


def run(
    settings: Settings, corpus: Corpus, engine: Engine, folder: RunFolder, console: Console
) -> None:
    """Simulate every measured row and write both sides into the folder."""
    study = settings.study
    if not isinstance(study, ValidationStudy):
        raise RunError("this procedure needs a study: run it by experiment=validate_simulator")
    path = MEASURED if study.rows is None else Path(study.rows)
    measured = read_steady_states(path)
    fitted = halves(measured)[0] if path == MEASURED else []
    records: list[dict[str, object]] = []
    unmatched = {row.model for row in measured}
    for name in study.profiles:
        profile = read_profile(name)
        rows = [row for row in measured if belongs(row, profile)]
        unmatched -= {row.model for row in rows}
        for row in track(rows, f"{name} (simulated)", console=console):
            interruption.check()
            for factor in study.prompt_factors:
                role = "fitted" if row in fitted else "judged"
                records.append(compare(name, profile, row, study, factor) | {"role": role})
    if not records:
        raise RunError(f"no row of {path} is of a model of {', '.join(study.profiles)}")
    write_parquet(pa.Table.from_pylist(records), folder.path / "steady_states.parquet")
    write_json(
        {"rows": path.name, "without_profile": sorted(unmatched), "source": engine.source},
        folder.path / "validation_source.json",
    )


def read_profile(name: str) -> Profile:
    """Read a profile by its file's name; raises `ConfigError`."""
    path = PROFILES / f"{name}.yaml"
    known = sorted(file.stem for file in PROFILES.glob("*.yaml"))
    if name not in known:
        raise ConfigError("study.profiles", name, f"known are {', '.join(known)}")
    node = OmegaConf.load(path)
    assert isinstance(node, DictConfig)
    profile = build(node, f"profile {name}")
    assert isinstance(profile, Profile)
    return profile


def belongs(row: SteadyState, profile: Profile) -> bool:
    """Say whether a row was measured with the profile's model on as many cards."""
    return row.model == profile.model and row.gpus == int(profile.devices.split(" x ")[0])


def compare(
    name: str, profile: Profile, row: SteadyState, study: ValidationStudy, factor: float
) -> dict[str, object]:
    """Return one record: the row, and what the simulated engine makes of it."""
    lengths = with_prompts(study.lengths(name, row.task), factor)
    simulated = simulate(profile, profile.kv_blocks, row, lengths)
    record = {
        "profile": name,
        "model": row.model,
        "task": row.task,
        "max_num_seqs": row.max_num_seqs,
        "prompt_factor": factor,
        "prompt_tokens": lengths.prompt_tokens[row.task],
        "preemptions": simulated.preemptions,
        "batch_measured": row.batch,
        "batch_simulated": simulated.batch,
    }
    for metric in METRICS:
        record[f"{metric}_measured"] = float(asdict(row)[metric])
        record[f"{metric}_simulated"] = float(getattr(simulated, metric))
    return record
