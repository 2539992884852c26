"""Calm, congested, recovery: the load of the paper's experiment."""

from collections.abc import Sequence

from bellman.load.arrivals.base import check_burstiness, draw_schedule
from bellman.load.processes import Process
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CALM, CONGESTED, RECOVERY, Phase, Schedule
from bellman.records import WARMUP
from bellman.schema import NotNegative, Positive, schema


@schema
class Phases:
    """Constant mean rates, one after the other, relative to the uncontrolled engine's capacity."""

    process: Process
    burstiness: Positive
    """Shape of gamma and Weibull gaps (1 is Poisson, below 1 is burstier); 1 for the others."""
    overload: Positive
    """Offered rate of the congested phase / capacity."""
    calm_load: Positive
    """Offered rate of warm-up and calm phase / capacity."""
    recovery_load: Positive
    """Offered rate of the recovery phase / capacity."""
    warmup_s: NotNegative
    """Seconds at the calm rate that are never counted."""
    calm_s: Positive
    congested_s: Positive
    recovery_s: Positive
    capacity_rps: Positive | None = None
    """Capacity of the uncontrolled engine in requests per second; null = measure it."""

    def __post_init__(self) -> None:
        """Check what the process takes."""
        check_burstiness(self.process, self.burstiness)

    @property
    def needs_capacity(self) -> bool:
        """Whether the capacity has to be measured before the schedule can be drawn."""
        return self.capacity_rps is None

    def schedule(
        self, capacity_rps: float, document_ids: Sequence[str], seed: int, repeat: int
    ) -> Schedule:
        """Draw warm-up, calm, congested and recovery from t = 0 on."""
        phases: list[Phase] = []
        start_s = 0.0
        for name, duration_s, load in (
            (WARMUP, self.warmup_s, self.calm_load),
            (CALM, self.calm_s, self.calm_load),
            (CONGESTED, self.congested_s, self.overload),
            (RECOVERY, self.recovery_s, self.recovery_load),
        ):
            if duration_s > 0:
                end_s = start_s + duration_s
                phases.append(Phase(name, start_s, end_s, load * capacity_rps))
                start_s = end_s
        segments = [Segment(p.start_s, p.end_s, p.rate_rps, p.rate_rps) for p in phases]
        return draw_schedule(
            self.process,
            self.burstiness,
            segments=segments,
            phases=phases,
            document_ids=document_ids,
            seed=seed,
            repeat=repeat,
        )
