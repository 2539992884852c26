"""The cell that fits the simulated engine's times to batches that were timed on a real one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from bellman.engines.batches import Batch, BatchTimes
from bellman.engines.simulated.engine import SimulatedEngine
from bellman.engines.simulated.fit_batches import START, START_FRONT_END, fit_batches
from bellman.engines.simulated.profile import FittedRange, Profile
from bellman.engines.simulated.step_energy import StepEnergy
from bellman.source import Source
from experiments.cells.base import Watch
from experiments.parts import Parts

Rounds = Sequence[Sequence[Mapping[str, Any]]]
"""Of every batch the times of its rounds, as `BatchesCell` leaves them."""
NO_ENERGY = StepEnergy(
    idle_w=0, power_limit_w=1, step_j=0, prefill_token_j=0, sequence_j=0, kv_token_j=0
)
"""The batches say nothing of energy, and nothing of it is shown."""


@dataclass(frozen=True)
class FitCell:
    """The fit to the medians of all rounds."""

    model: str
    """What answered."""
    batches: tuple[Batch, ...]
    before: Rounds
    after: Rounds
    limits: Mapping[str, int]
    """The server's: of its batch, its steps and its KV cache, and whether it caches prefixes."""
    source: Source = "simulated"
    label: str = "fit"
    axes: Mapping[str, Any] = field(default_factory=dict)

    def specification(self) -> dict[str, Any]:
        """Return what the fit is made from."""
        return {
            "model": self.model,
            "batches": [asdict(batch) for batch in self.batches],
            "before": self.before,
            "after": self.after,
            "limits": dict(self.limits),
        }

    def run(self, folder: Path, parts: Parts, watch: Watch) -> dict[str, Any]:
        """Fit; returns the times, their errors, and the engine that has them as plain values."""
        watch.begin(self.label, None)
        rounds = [[*early, *late] for early, late in zip(self.before, self.after, strict=True)]
        measured = list(zip(self.batches, map(median_times, rounds), strict=True))
        config = self.unfitted(measured)
        profile, errors = fit_batches(config, measured)
        watch.finish(None)
        return {
            "source": self.source,
            "front_end": asdict(profile.front_end),
            "step_time": asdict(profile.time),
            "batches": [
                {
                    **asdict(batch),
                    **asdict(times),
                    "first_error": float(errors[2 * number]),
                    "last_error": float(errors[2 * number + 1]),
                }
                for number, (batch, times) in enumerate(measured)
            ],
            "drift": drift(self.before, self.after),
            "engine": as_node(replace(config, profile=profile)),
        }

    def unfitted(self, measured: Sequence[tuple[Batch, BatchTimes]]) -> SimulatedEngine:
        """Return the simulated engine with the server's limits, not fitted yet."""
        places = self.limits["max_num_seqs"]
        fitted = FittedRange(
            sequences=places,
            kv_tokens=max(
                min(batch.requests, places) * (times.prompt_tokens + batch.output_tokens)
                for batch, times in measured
            ),
            prefill_tokens=self.limits["max_num_batched_tokens"],
        )
        profile = Profile(
            model=self.model,
            devices="this machine",
            source="batches of requests on the idle engine",
            kv_blocks=self.limits["kv_blocks"],
            front_end=START_FRONT_END,
            time=START,
            energy=NO_ENERGY,
            fitted=fitted,
        )
        limits: dict[str, Any] = dict(self.limits)
        return SimulatedEngine(profile, **limits)


def median_times(rounds: Sequence[Mapping[str, Any]]) -> BatchTimes:
    """Return the medians of a batch's rounds."""
    return BatchTimes(
        prompt_tokens=round(median(times["prompt_tokens"] for times in rounds)),
        first_s=median(times["first_s"] for times in rounds),
        last_s=median(times["last_s"] for times in rounds),
    )


def drift(before: Rounds, after: Rounds) -> list[float]:
    """Return by how much each batch took longer after the episodes than before them, as a share.

    The prompts differ, so it is the machine's drift and the noise of the rounds together.
    """
    return [
        median_times(late).last_s / median_times(early).last_s - 1
        for early, late in zip(before, after, strict=True)
    ]


def as_node(value: Any) -> Any:
    """Return a configuration's dataclass as the node that builds it, those inside it too."""
    if not is_dataclass(value):
        return value
    entries = {one.name: as_node(getattr(value, one.name)) for one in fields(value)}
    return {"_target_": f"{type(value).__module__}.{type(value).__qualname__}", **entries}
