"""A ramp into overload and back: at which load does congestion start, and when does it end."""

from collections.abc import Sequence
from dataclasses import dataclass

from bellman.errors import require
from bellman.load.arrivals.base import (
    check_capacity,
    check_durations,
    check_loads,
    check_process,
    draw_schedule,
)
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CALM, CONGESTED, RECOVERY, Phase, Schedule
from bellman.records import WARMUP


@dataclass(frozen=True)
class Ramp:
    """Calm, then up to the overload in a straight line, hold, down again, and recovery."""

    process: str
    burstiness: float
    """Shape of gamma and Weibull gaps (1 is Poisson, below 1 is burstier); 1 for the others."""
    overload: float
    """Offered rate at the top / capacity."""
    calm_load: float
    """Offered rate before and after the ramp / capacity."""
    warmup_s: float
    """Seconds at the calm rate that are never counted."""
    calm_s: float
    rise_s: float
    hold_s: float
    fall_s: float
    recovery_s: float
    capacity_rps: float | None = None
    """Capacity of the uncontrolled engine in requests per second; null = measure it."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_process(self.process, self.burstiness)
        check_capacity(self.capacity_rps)
        check_loads(overload=self.overload, calm_load=self.calm_load)
        check_durations(
            calm_s=self.calm_s,
            rise_s=self.rise_s,
            hold_s=self.hold_s,
            fall_s=self.fall_s,
            recovery_s=self.recovery_s,
        )
        require(self.warmup_s >= 0, "arrivals.warmup_s", self.warmup_s, "must be 0 or more")

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
