"""The simulated engine beside measured steady states: ITL, tokens/s, watts, J/token.

Every row of a measured model is run through the simulated engine by the protocol it was measured
with. Profiles were fitted on every other row; the rest are judged. The prompt lengths of the
measured rows are not published, so that all of it is repeated with shorter and longer prompts.
"""

import hashlib
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from bellman.build import build
from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.steady_states import (
    MEASURED,
    SteadyState,
    halves,
    read_steady_states,
)
from bellman.errors import ConfigError, RunError, require
from bellman.schema import OneOrMore, Positive, schema
from bellman.settings import Settings
from experiments.cells.steady_state import SteadyStateCell
from experiments.studies.base import Cells

PROFILES = Path(__file__).parents[2] / "conf" / "engine" / "profile"
ELSEWHERE = "elsewhere"
"""Stands for a profile without prompt lengths of its own."""


@schema
class Validation:
    """The profiles that are judged, and what is assumed of the rows."""

    profiles: OneOrMore[str]
    """Files of conf/engine/profile; each is judged on the rows of its model."""
    prompt_tokens: dict[str, Any]
    """Assumed mean prompt length by task, by profile; `elsewhere` for the rest."""
    prompt_factors: list[Positive]
    """All prompts times this; 1 is what is judged."""
    rows: str | None = None
    """Another file of steady states in ML.ENERGY's form; all its rows are judged."""

    def __post_init__(self) -> None:
        """Check that what is judged is there."""
        factors = self.prompt_factors
        require(1 in factors, "prompt_factors", factors, "must have 1 among them")

    @property
    def path(self) -> Path:
        """The file of the rows."""
        return MEASURED if self.rows is None else Path(self.rows)

    def check(self, settings: Settings) -> None:
        """Read profiles and rows; raises `ConfigError`, or `RunError` where no row fits."""
        if not self.row_cells():
            raise RunError(f"no row of {self.path} is of a model of {', '.join(self.profiles)}")

    def cells(self, settings: Settings) -> Cells:
        """Yield a cell for every row of every profile."""
        yield self.row_cells()

    def facts(self, settings: Settings) -> dict[str, Any]:
        """Return where the rows come from, and which models have rows but no profile."""
        models = {cell.row.model for cell in self.row_cells()}
        rows = read_steady_states(self.path)
        return {
            "rows": self.path.name,
            "rows_digest": hashlib.sha256(self.path.read_bytes()).hexdigest(),
            "without_profile": sorted({row.model for row in rows} - models),
        }

    def row_cells(self) -> list[SteadyStateCell]:
        """Return the cells, profile by profile."""
        rows = read_steady_states(self.path)
        fitted = halves(rows)[0] if self.path == MEASURED else []
        cells = []
        for name in self.profiles:
            node = read_profile(name)
            profile = build(node, f"profile {name}")
            cells += [
                SteadyStateCell(
                    profile_name=name,
                    profile=node,
                    row=row,
                    role="fitted" if row in fitted else "judged",
                    prompt_tokens=self.assumed_tokens(name, row.task),
                    prompt_factors=tuple(self.prompt_factors),
                )
                for row in rows
                if belongs(row, profile)
            ]
        return cells

    def assumed_tokens(self, profile: str, task: str) -> float:
        """Return the assumed mean prompt length of a task's requests."""
        tasks = self.prompt_tokens.get(profile, {})
        return float(tasks.get(task, self.prompt_tokens[ELSEWHERE]))


def read_profile(name: str) -> dict[str, Any]:
    """Read a profile's node by its file's name; raises `ConfigError`."""
    known = sorted(file.stem for file in PROFILES.glob("*.yaml"))
    if name not in known:
        raise ConfigError("study.profiles", name, f"known are {', '.join(known)}")
    node = OmegaConf.to_container(OmegaConf.load(PROFILES / f"{name}.yaml"), resolve=True)
    assert isinstance(node, dict)
    return {str(key): value for key, value in node.items()}


def belongs(row: SteadyState, profile: Profile) -> bool:
    """Say whether a row was measured with the profile's model on as many cards."""
    return row.model == profile.model and row.gpus == int(profile.devices.split(" x ")[0])
