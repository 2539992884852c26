"""A day (or a shorter one) whose rate goes up and down as a sine: the load of a daily peak."""

import itertools
import math
from collections.abc import Sequence

from bellman.errors import require
from bellman.load.arrivals.base import check_burstiness, draw_schedule
from bellman.load.processes import Process
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CONGESTED, Phase, Schedule
from bellman.records import WARMUP
from bellman.schema import Count, NotNegative, Positive, schema

SEGMENTS_A_DAY = 480
"""Straight pieces a sine is made of: at most 0.01 % of the amplitude off."""


@schema
class SineDay:
    """rate(t) = capacity x (mean_load - amplitude cos(2 pi t / day_s)): the peak is at noon."""

    process: Process
    burstiness: Positive
    """Shape of gamma and Weibull gaps (1 is Poisson, below 1 is burstier); 1 for the others."""
    mean_load: Positive
    """Mean offered rate / capacity."""
    amplitude: NotNegative
    """(Peak - mean) / capacity; at most `mean_load`."""
    warmup_s: NotNegative
    """Seconds at the night's rate that are never counted."""
    day_s: Positive
    """Length of a day: 86,400, or less to compress it."""
    days: Count
    capacity_rps: Positive | None = None
    """Capacity of the uncontrolled engine in requests per second; null = measure it."""

    def __post_init__(self) -> None:
        """Check what several entries must keep together."""
        check_burstiness(self.process, self.burstiness)
        at_most = f"must be at most mean_load={self.mean_load:g}"
        require(self.amplitude <= self.mean_load, "amplitude", self.amplitude, at_most)

    @property
    def needs_capacity(self) -> bool:
        """Whether the capacity has to be measured before the schedule can be drawn."""
        return self.capacity_rps is None

    def schedule(
        self, capacity_rps: float, document_ids: Sequence[str], seed: int, repeat: int
    ) -> Schedule:
        """Draw warm-up and the days, which are one phase, `congested` by name."""

        def rate_rps(day: float) -> float:
            load = self.mean_load - self.amplitude * math.cos(2 * math.pi * day)
            return capacity_rps * max(0.0, load)

        night_rps = rate_rps(0.0)
        segments = [Segment(0.0, self.warmup_s, night_rps, night_rps)] if self.warmup_s > 0 else []
        steps = [step / SEGMENTS_A_DAY for step in range(SEGMENTS_A_DAY * self.days + 1)]
        for start, end in itertools.pairwise(steps):
            start_s, end_s = (self.warmup_s + self.day_s * day for day in (start, end))
            segments.append(Segment(start_s, end_s, rate_rps(start), rate_rps(end)))
        end_s = segments[-1].end_s
        phases = [Phase(CONGESTED, self.warmup_s, end_s, self.mean_load * capacity_rps)]
        if self.warmup_s > 0:
            phases.insert(0, Phase(WARMUP, 0.0, self.warmup_s, night_rps))
        return draw_schedule(
            self.process,
            self.burstiness,
            segments=segments,
            phases=phases,
            document_ids=document_ids,
            seed=seed,
            repeat=repeat,
        )
