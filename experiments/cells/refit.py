"""The cell that fits profiles on some measured steady states, and judges them on the others."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bellman.build import build
from bellman.engines.simulated.fit_energy import fit_energy
from bellman.engines.simulated.fit_serving import Served, fit_serving
from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.steady_states import SPLITS, Lengths, SteadyState, simulate
from bellman.source import Source
from experiments.cells.base import Watch
from experiments.cells.steady_state import record_of
from experiments.parts import Parts


@dataclass(frozen=True)
class RefitCell:
    """The profiles of one tokenizer family, fitted again on one part of their rows."""

    profiles: Mapping[str, Mapping[str, Any]]
    """Nodes by the profiles' names; their kernels' times stay."""
    rows: Mapping[str, tuple[SteadyState, ...]]
    """All rows, by the same names."""
    split: str
    fit_prompts: tuple[str, ...]
    """Tasks whose mean prompt length is fitted; for the others it is the profiles'."""
    source: Source = "simulated"
    axes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"{' and '.join(self.profiles)} fitted on {self.split}"

    def specification(self) -> dict[str, Any]:
        """Return the rows and the profiles themselves: no file stands behind them."""
        return {
            "profiles": {name: dict(node) for name, node in self.profiles.items()},
            "rows": {name: [asdict(row) for row in rows] for name, rows in self.rows.items()},
            "split": self.split,
            "fit_prompts": list(self.fit_prompts),
        }

    def run(self, folder: Path, parts: Parts, watch: Watch) -> dict[str, Any]:
        """Fit and judge; returns a record for every row."""
        watch.begin(self.label, None)
        split = SPLITS[self.split]
        built: dict[str, Profile] = {
            name: build(node, f"profile {name}") for name, node in self.profiles.items()
        }
        fitted_rows = {name: split(list(self.rows[name]))[0] for name in built}
        first = next(iter(built.values())).fitted
        serving = fit_serving(
            [Served(profile, tuple(fitted_rows[name])) for name, profile in built.items()],
            Lengths(self.prompt_tokens(built), first.prompt_variation),
            set(self.fit_prompts),
        )
        records: list[dict[str, Any]] = []
        for name, profile in zip(built, serving.profiles, strict=True):
            refitted = self.with_energy(profile, fitted_rows[name], serving.lengths)
            for row in self.rows[name]:
                role = "fitted" if row in fitted_rows[name] else "judged"
                record = record_of(name, refitted, row, serving.lengths, 1.0)
                records.append(record | {"role": role, "split": self.split})
        watch.finish(None)
        return {"source": self.source, "records": records}

    def prompt_tokens(self, profiles: Mapping[str, Profile]) -> dict[str, float]:
        """Return the means by task, as the profiles have them."""
        found: dict[str, float] = {}
        for profile in profiles.values():
            found |= profile.fitted.prompt_tokens
        return found

    def with_energy(self, profile: Profile, rows: list[SteadyState], lengths: Lengths) -> Profile:
        """Return the profile with energy fitted to the rows; several tasks can tell KV energy."""
        runs = [simulate(profile, profile.kv_blocks, row, lengths) for row in rows]
        tasks = {row.task for row in rows}
        kv_token_j = None if len(tasks) > 1 else profile.energy.kv_token_j
        energy = fit_energy(profile.time, rows, runs, profile.idle_w, kv_token_j)
        return replace(profile, energy=energy)
