"""On-off bursts: overload that comes and goes faster than a control law may like."""

from collections.abc import Sequence

from bellman.load.arrivals.synthetic import Synthetic
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CONGESTED, RECOVERY, Phase, Schedule
from bellman.records import WARMUP
from bellman.schema import Count, Positive, schema


@schema
class Bursts(Synthetic):
    """Stretches of overload (`on_s`) with calm stretches (`off_s`) between them."""

    overload: Positive
    """Offered rate of a burst / capacity."""
    calm_load: Positive
    """Offered rate between bursts, in warm-up and recovery / capacity."""
    on_s: Positive
    off_s: Positive
    bursts: Count
    recovery_s: Positive

    def schedule(
        self, capacity_rps: float, document_ids: Sequence[str], seed: int, repeat: int
    ) -> Schedule:
        """Draw the schedule; the whole train, from first to last burst, is the congested phase."""
        calm_rps, burst_rps = self.calm_load * capacity_rps, self.overload * capacity_rps
        steps = [(self.warmup_s, calm_rps), (self.on_s, burst_rps)]
        steps += [(self.off_s, calm_rps), (self.on_s, burst_rps)] * (self.bursts - 1)
        steps += [(self.recovery_s, calm_rps)]
        segments: list[Segment] = []
        start_s = 0.0
        for duration_s, rate_rps in steps:
            segments.append(Segment(start_s, start_s + duration_s, rate_rps, rate_rps))
            start_s += duration_s
        train_s = self.bursts * self.on_s + (self.bursts - 1) * self.off_s
        train_end_s = self.warmup_s + train_s
        train_requests = self.bursts * self.on_s * burst_rps
        train_requests += (self.bursts - 1) * self.off_s * calm_rps
        phases = [
            Phase(WARMUP, 0.0, self.warmup_s, calm_rps),
            Phase(CONGESTED, self.warmup_s, train_end_s, train_requests / train_s),
            Phase(RECOVERY, train_end_s, start_s, calm_rps),
        ]
        return self.draw(segments, phases, document_ids, seed, repeat)
