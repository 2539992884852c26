"""One mean rate all the time: what capacity and fidelity are measured with."""

from collections.abc import Sequence

from bellman.errors import require
from bellman.load.arrivals.synthetic import Synthetic
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CONGESTED, Phase, Schedule
from bellman.records import WARMUP
from bellman.schema import Positive, schema


@schema
class Steady(Synthetic):
    """A constant mean rate, given as requests per second or relative to the capacity."""

    rate_rps: Positive | None
    """Offered rate; null when `load` gives it."""
    load: Positive | None
    """Offered rate / capacity of the uncontrolled engine; null when `rate_rps` gives it."""
    duration_s: Positive
    """Seconds that count."""

    def __post_init__(self) -> None:
        """Check what several entries must keep together."""
        super().__post_init__()
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
        phases = [
            Phase(WARMUP, 0.0, self.warmup_s, rate_rps),
            Phase(CONGESTED, self.warmup_s, end_s, rate_rps),
        ]
        return self.draw(
            [Segment(0.0, end_s, rate_rps, rate_rps)], phases, document_ids, seed, repeat
        )
