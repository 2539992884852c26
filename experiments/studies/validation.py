"""The simulated engine beside measured steady states: ITL, tokens/s, watts, J/token.

Every row of a measured model is run through the simulated engine by the protocol it was measured
with. The package's profiles were fitted on every other row; the rest are judged. Then they are
fitted again on other parts of the rows, and judged on what those leave out: the halves swapped,
small batches for large ones, large ones for small ones. The prompt lengths of the measured rows are
not published, so that the profile as it is is also judged with shorter and longer prompts.
"""

import hashlib
from pathlib import Path
from typing import Any, Literal

from omegaconf import OmegaConf

from bellman.build import build
from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.steady_states import (
    MEASURED,
    SPLITS,
    SteadyState,
    halves,
    read_steady_states,
)
from bellman.errors import ConfigError, RunError, require
from bellman.schema import OneOrMore, Positive, schema
from bellman.settings import Settings
from experiments.cells.refit import RefitCell
from experiments.cells.steady_state import SteadyStateCell
from experiments.studies.base import Cells

PROFILES = Path(__file__).parents[2] / "conf" / "engine" / "profile"


@schema
class Validation:
    """The profiles that are judged, and what is assumed of the rows."""

    profiles: OneOrMore[str]
    """Files of conf/engine/profile, or paths; each is judged on the rows of its model."""
    models: dict[str, str]
    """What the rows call a profile's model, by the profile's name, where that is another one."""
    prompt_tokens: dict[str, Positive]
    """Mean prompt length by task; else the profile's own, as fitted."""
    other_prompt_tokens: Positive
    """The same of tasks that neither names."""
    prompt_factors: list[Positive]
    """All prompts times this; 1 is what is judged."""
    splits: list[Literal["swapped", "small_to_large", "large_to_small"]]
    """How the rows that a profile was fitted on are split to fit it again."""
    fit_prompts: list[str]
    """Tasks whose prompts are then fitted, too."""
    rows: str | None = None
    """Another file of steady states in ML.ENERGY's form; all its rows are judged."""

    def __post_init__(self) -> None:
        """Check that what is judged is there."""
        factors = self.prompt_factors
        require(1 in factors, "prompt_factors", factors, "must have 1 among them")
        names = [Path(profile).stem for profile in self.profiles]
        for name in self.models:
            known = ", ".join(names)
            require(name in names, "models", name, f"must be one of the profiles, {known}")

    @property
    def path(self) -> Path:
        """The file of the rows."""
        return MEASURED if self.rows is None else Path(self.rows)

    def check(self, settings: Settings) -> None:
        """Read profiles and rows; raises `ConfigError`, or `RunError` where no row fits."""
        if not self.row_cells():
            raise RunError(
                f"no row of {self.path} is of a model of {', '.join(self.profiles)}: study.models "
                "says what the rows call it"
            )

    def cells(self, settings: Settings) -> Cells:
        """Yield the fits on other parts of the rows, and a cell for every row of every profile.

        The fits first: they take longest, and what is left in the end does not keep one core alone.
        """
        yield [*self.refit_cells(), *self.row_cells()]

    def facts(self, settings: Settings) -> dict[str, Any]:
        """Return where the rows come from, and which models have rows but no profile."""
        models = {cell.row.model for cell in self.row_cells()}
        return {
            "rows": self.path.name,
            "rows_digest": self.digest,
            "without_profile": sorted({row.model for row in self.all_rows()} - models),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the file of the rows."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def all_rows(self) -> list[SteadyState]:
        """Return the rows of all models."""
        return read_steady_states(self.path)

    def row_cells(self) -> list[SteadyStateCell]:
        """Return the cells of the profiles as they are, profile by profile."""
        cells = []
        for name, (node, profile, rows) in self.judged().items():
            fitted = halves(rows)[0] if profile.fitted.rows_digest == self.digest else []
            cells += [
                SteadyStateCell(
                    profile_name=name,
                    profile=node,
                    row=row,
                    role="fitted" if row in fitted else "judged",
                    prompt_tokens=self.assumed_tokens(profile, row.task),
                    prompt_variation=profile.fitted.prompt_variation,
                    prompt_factors=tuple(self.prompt_factors),
                )
                for row in rows
            ]
        return cells

    def refit_cells(self) -> list[RefitCell]:
        """Return a cell for every family of tokenizers and every split that leaves rows to both."""
        families: dict[str, list[str]] = {}
        judged = {
            name: (node, profile, rows)
            for name, (node, profile, rows) in self.judged().items()
            if profile.fitted.rows_digest == self.digest
        }
        for name, (_, profile, _) in judged.items():
            families.setdefault(profile.fitted.tokenizer or name, []).append(name)
        return [
            RefitCell(
                profiles={name: judged[name][0] for name in names},
                rows={name: tuple(judged[name][2]) for name in names},
                split=split,
                fit_prompts=tuple(self.fit_prompts),
            )
            for names in families.values()
            for split in self.splits
            if all(all(SPLITS[split](judged[name][2])) for name in names)
        ]

    def judged(self) -> dict[str, tuple[dict[str, Any], Profile, list[SteadyState]]]:
        """Return each profile's node, the profile, and the rows of its model on as many cards."""
        rows = self.all_rows()
        found = {}
        for name in self.profiles:
            node = read_profile(name)
            profile = build(node, f"profile {name}")
            model = self.models.get(Path(name).stem, profile.model)
            gpus = int(profile.devices.split(" x ")[0])
            own = [row for row in rows if row.model == model and row.gpus == gpus]
            found[Path(name).stem] = (node, profile, own)
        return found

    def assumed_tokens(self, profile: Profile, task: str) -> float:
        """Return the assumed mean prompt length of a task's requests."""
        known = profile.fitted.prompt_tokens | self.prompt_tokens
        return float(known.get(task, self.other_prompt_tokens))


def read_profile(name: str) -> dict[str, Any]:
    """Read a profile's node by its file's name, or by a path; raises `ConfigError`."""
    path = Path(name) if name.endswith(".yaml") else PROFILES / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in PROFILES.glob("*.yaml")))
        raise ConfigError("study.profiles", name, f"known are {known}, or a path of a .yaml file")
    node = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    if not isinstance(node, dict):
        raise ConfigError(
            "study.profiles", name, "must be a file that scripts/fit_profile.py wrote"
        )
    return {str(key): value for key, value in node.items()}
