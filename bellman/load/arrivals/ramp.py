"""A ramp into overload and back: at which load does congestion start, and when does it end."""

from collections.abc import Sequence

from bellman.load.arrivals.base import check_burstiness, draw_schedule
from bellman.load.processes import Process
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CALM, CONGESTED, RECOVERY, Phase, Schedule
from bellman.records import WARMUP
from bellman.schema import NotNegative, Positive, schema


@schema
class Ramp:
    """Calm, then up to the overload in a straight line, hold, down again, and recovery."""

    process: Process
    burstiness: Positive
    """Shape of gamma and Weibull gaps (1 is Poisson, below 1 is burstier); 1 for the others."""
    overload: Positive
    """Offered rate at the top / capacity."""
    calm_load: Positive
    """Offered rate before and after the ramp / capacity."""
    warmup_s: NotNegative
    """Seconds at the calm rate that are never counted."""
    calm_s: Positive
    rise_s: Positive
    hold_s: Positive
    fall_s: Positive
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
        """Draw the schedule; rise, hold and fall together are the congested phase."""
        calm_rps, top_rps = self.calm_load * capacity_rps, self.overload * capacity_rps
        segments: list[Segment] = []
        start_s = 0.0
        for duration_s, from_rps, to_rps in (
            (self.warmup_s, calm_rps, calm_rps),
            (self.calm_s, calm_rps, calm_rps),
            (self.rise_s, calm_rps, top_rps),
            (self.hold_s, top_rps, top_rps),
            (self.fall_s, top_rps, calm_rps),
            (self.recovery_s, calm_rps, calm_rps),
        ):
            segments.append(Segment(start_s, start_s + duration_s, from_rps, to_rps))
            start_s += duration_s
        warmup, calm, rise, hold, fall, recovery = segments
        congested_rps = (rise.expected + hold.expected + fall.expected) / (
            fall.end_s - rise.start_s
        )
        phases = [
            Phase(WARMUP, warmup.start_s, warmup.end_s, calm_rps),
            Phase(CALM, calm.start_s, calm.end_s, calm_rps),
            Phase(CONGESTED, rise.start_s, fall.end_s, congested_rps),
            Phase(RECOVERY, recovery.start_s, recovery.end_s, calm_rps),
        ]
        return draw_schedule(
            self.process,
            self.burstiness,
            segments=[segment for segment in segments if segment.end_s > segment.start_s],
            phases=[phase for phase in phases if phase.end_s > phase.start_s],
            document_ids=document_ids,
            seed=seed,
            repeat=repeat,
        )
