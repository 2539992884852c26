"""A ramp into overload and back: at which load does congestion start, and when does it end."""

from collections.abc import Sequence

from bellman.load.arrivals.synthetic import Synthetic
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CALM, CONGESTED, RECOVERY, Phase, Schedule
from bellman.records import WARMUP
from bellman.schema import Positive, schema


@schema
class Ramp(Synthetic):
    """Calm, then up to the overload in a straight line, hold, down again, and recovery."""

    overload: Positive
    """Offered rate at the top / capacity."""
    calm_load: Positive
    """Offered rate before and after the ramp / capacity."""
    calm_s: Positive
    rise_s: Positive
    hold_s: Positive
    fall_s: Positive
    recovery_s: Positive

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
        return self.draw(segments, phases, document_ids, seed, repeat)
