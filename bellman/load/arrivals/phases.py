"""Calm, congested, recovery: the load of the paper's experiment."""

from collections.abc import Sequence

from bellman.load.arrivals.synthetic import Synthetic
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CALM, CONGESTED, RECOVERY, Phase, Schedule
from bellman.records import WARMUP
from bellman.schema import Positive, schema


@schema
class Phases(Synthetic):
    """Constant mean rates, one after the other, relative to the uncontrolled engine's capacity."""

    overload: Positive
    """Offered rate of the congested phase / capacity."""
    calm_load: Positive
    """Offered rate of warm-up and calm phase / capacity."""
    recovery_load: Positive
    """Offered rate of the recovery phase / capacity."""
    calm_s: Positive
    congested_s: Positive
    recovery_s: Positive

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
            phases.append(Phase(name, start_s, start_s + duration_s, load * capacity_rps))
            start_s += duration_s
        segments = [Segment(p.start_s, p.end_s, p.rate_rps, p.rate_rps) for p in phases]
        return self.draw(segments, phases, document_ids, seed, repeat)
