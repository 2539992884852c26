"""One mean rate all the time: what capacity and fidelity are measured with."""

from collections.abc import Sequence

from bellman.errors import require
from bellman.load.arrivals.base import check_burstiness, draw_schedule
from bellman.load.processes import Process
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CONGESTED, Phase, Schedule
from bellman.records import WARMUP
from bellman.schema import NotNegative, Positive, schema


@schema
class Steady:
    """A constant mean rate, given as requests per second or relative to the capacity."""

    process: Process
    burstiness: Positive
    """Shape of gamma and Weibull gaps (1 is Poisson, below 1 is burstier); 1 for the others."""
    rate_rps: Positive | None
    """Offered rate; null when `load` gives it."""
    load: Positive | None
    """Offered rate / capacity of the uncontrolled engine; null when `rate_rps` gives it."""
    warmup_s: NotNegative
    """Seconds at the same rate that are never counted."""
    duration_s: Positive
    """Seconds that count."""
    capacity_rps: Positive | None = None
    """Capacity of the uncontrolled engine; null = measure it, where `load` needs it."""

    def __post_init__(self) -> None:
        """Check what several entries must keep together."""
        check_burstiness(self.process, self.burstiness)
        one = (self.rate_rps is None) != (self.load is None)
        require(one, "rate_rps", self.rate_rps, "give either rate_rps or load")

    @property
    def needs_capacity(self) -> bool:
        """Whether the capacity has to be measured before the schedule can be drawn."""
        return self.load is not None and self.capacity_rps is None

    def schedule(
        self, capacity_rps: float, document_ids: Sequence[str], seed: int, repeat: int
    ) -> Schedule:
        """Draw warm-up and one phase, `congested` by name whatever the rate."""
        rate_rps = self.rate_rps if self.load is None else self.load * capacity_rps
        assert rate_rps is not None
        end_s = self.warmup_s + self.duration_s
        phases = [Phase(CONGESTED, self.warmup_s, end_s, rate_rps)]
        if self.warmup_s > 0:
            phases.insert(0, Phase(WARMUP, 0.0, self.warmup_s, rate_rps))
        return draw_schedule(
            self.process,
            self.burstiness,
            segments=[Segment(0.0, end_s, rate_rps, rate_rps)],
            phases=phases,
            document_ids=document_ids,
            seed=seed,
            repeat=repeat,
        )
