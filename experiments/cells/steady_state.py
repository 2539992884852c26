"""The cell that puts a measured steady state's load through the simulated engine."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bellman.build import build
from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.steady_states import (
    METRICS,
    Lengths,
    SteadyState,
    simulate,
    with_prompts,
)
from bellman.source import Source
from experiments.cells.base import Watch
from experiments.parts import Parts

SHIPPED = "as it is"
"""What records call the profile that no study has fitted again."""


@dataclass(frozen=True)
class SteadyStateCell:
    """One measured row, with its assumed prompts as they are, shorter and longer."""

    profile_name: str
    profile: Mapping[str, Any]
    """The profile's node."""
    row: SteadyState
    role: str
    """`fitted` where the profile was fitted on the row, else `judged`."""
    prompt_tokens: float
    """Assumed mean."""
    prompt_variation: float
    """Assumed standard deviation / mean."""
    prompt_factors: tuple[float, ...]
    source: Source = "simulated"
    axes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"{self.profile_name} {self.row.task} batch {self.row.max_num_seqs}"

    def specification(self) -> dict[str, Any]:
        """Return the row and the profile themselves: no file stands behind them."""
        return {
            "profile_name": self.profile_name,
            "profile": dict(self.profile),
            "row": asdict(self.row),
            "role": self.role,
            "prompt_tokens": self.prompt_tokens,
            "prompt_variation": self.prompt_variation,
            "prompt_factors": list(self.prompt_factors),
        }

    def run(self, folder: Path, parts: Parts, watch: Watch) -> dict[str, Any]:
        """Simulate the row with every factor; returns a record each."""
        profile = build(self.profile, f"profile {self.profile_name}")
        watch.begin(self.label, None)
        records = [self.compare(profile, factor) for factor in self.prompt_factors]
        watch.finish(None)
        return {"source": self.source, "records": records}

    def compare(self, profile: Profile, factor: float) -> dict[str, Any]:
        """Return one record: the row, and what the simulated engine makes of it."""
        lengths = Lengths({self.row.task: self.prompt_tokens}, self.prompt_variation)
        record = record_of(self.profile_name, profile, self.row, lengths, factor)
        return record | {"role": self.role, "split": SHIPPED}


def record_of(
    name: str, profile: Profile, row: SteadyState, lengths: Lengths, factor: float
) -> dict[str, Any]:
    """Return a row beside what the simulated engine makes of it, with all prompts x `factor`."""
    assumed = with_prompts(lengths, factor)
    simulated = simulate(profile, profile.kv_blocks, row, assumed)
    record = {
        "profile": name,
        "model": row.model,
        "task": row.task,
        "max_num_seqs": row.max_num_seqs,
        "prompt_factor": factor,
        "prompt_tokens": assumed.prompt_tokens[row.task],
        "prompt_variation": assumed.prompt_variation,
        "preemptions": simulated.preemptions,
        "batch_measured": row.batch,
        "batch_simulated": simulated.batch,
    }
    for metric in METRICS:
        measured = getattr(row, metric)
        record[f"{metric}_measured"] = None if measured is None else float(measured)
        record[f"{metric}_simulated"] = float(getattr(simulated, metric))
    return record
