"""What the kinds of arrivals share that are drawn from a process along a rate profile."""

from collections.abc import Sequence
from dataclasses import field

from bellman.load.arrivals.base import check_burstiness, draw_schedule
from bellman.load.processes import Process
from bellman.load.rate_profile import Segment
from bellman.load.schedule import Phase, Schedule
from bellman.schema import NotNegative, Positive, schema


@schema
class Synthetic:
    """Entries of every such kind; a kind adds its own, and says its rates and phases."""

    process: Process
    burstiness: Positive
    """Shape of gamma and Weibull gaps (1 is Poisson, below 1 is burstier); 1 for the others."""
    warmup_s: NotNegative
    """Seconds at the beginning that are never counted."""
    capacity_rps: Positive | None = field(default=None, kw_only=True)
    """Capacity of the uncontrolled engine in requests per second; null = measure it."""

    def __post_init__(self) -> None:
        """Check what the process takes."""
        check_burstiness(self.process, self.burstiness)

    @property
    def needs_capacity(self) -> bool:
        """Whether the capacity has to be measured before the schedule can be drawn."""
        return self.capacity_rps is None

    def draw(
        self,
        segments: Sequence[Segment],
        phases: Sequence[Phase],
        document_ids: Sequence[str],
        seed: int,
        repeat: int,
    ) -> Schedule:
        """Draw the arrivals of one repeat; what has no length is left out."""
        return draw_schedule(
            self.process,
            self.burstiness,
            segments=[segment for segment in segments if segment.end_s > segment.start_s],
            phases=[phase for phase in phases if phase.length_s > 0],
            document_ids=document_ids,
            seed=seed,
            repeat=repeat,
        )
