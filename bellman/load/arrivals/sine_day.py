"""A day (or a shorter one) whose rate goes up and down as a sine: the load of a daily peak."""

import itertools
import math
from collections.abc import Sequence

from bellman.errors import require
from bellman.load.arrivals.synthetic import Synthetic
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CONGESTED, Phase, Schedule
from bellman.records import WARMUP
from bellman.schema import Count, NotNegative, Positive, schema

SEGMENTS_A_DAY = 480
"""Straight pieces a sine is made of: at most 0.01 % of the amplitude off."""


@schema
class SineDay(Synthetic):
    """rate(t) = capacity x (mean_load - amplitude cos(2 pi t / day_s)): the peak is at noon."""

    mean_load: Positive
    """Mean offered rate / capacity."""
    amplitude: NotNegative
    """(Peak - mean) / capacity; at most `mean_load`."""
    day_s: Positive
    """Length of a day: 86,400, or less to compress it."""
    days: Count

    def __post_init__(self) -> None:
        """Check what several entries must keep together."""
        super().__post_init__()
        at_most = f"must be at most mean_load={self.mean_load:g}"
        require(self.amplitude <= self.mean_load, "amplitude", self.amplitude, at_most)

    def schedule(
        self, capacity_rps: float, document_ids: Sequence[str], seed: int, repeat: int
    ) -> Schedule:
        """Draw warm-up and the days, which are one phase, `congested` by name."""

        def rate_rps(day: float) -> float:
            load = self.mean_load - self.amplitude * math.cos(2 * math.pi * day)
            return capacity_rps * max(0.0, load)

        night_rps = rate_rps(0.0)
        segments = [Segment(0.0, self.warmup_s, night_rps, night_rps)]
        steps = [step / SEGMENTS_A_DAY for step in range(SEGMENTS_A_DAY * self.days + 1)]
        for start, end in itertools.pairwise(steps):
            start_s, end_s = (self.warmup_s + self.day_s * day for day in (start, end))
            segments.append(Segment(start_s, end_s, rate_rps(start), rate_rps(end)))
        end_s = segments[-1].end_s
        phases = [
            Phase(WARMUP, 0.0, self.warmup_s, night_rps),
            Phase(CONGESTED, self.warmup_s, end_s, self.mean_load * capacity_rps),
        ]
        return self.draw(segments, phases, document_ids, seed, repeat)
