"""The queue law with progressive signalling (beLLMan, arXiv 2510.15330; thresholds are ours)."""

from bellman.controllers.base import Level
from bellman.errors import require
from bellman.schema import NotNegative, Share, schema
from bellman.sensing.observation import Observation


@schema
class QueueLaw:
    """Level from the outstanding requests Q, moving at most `max_step` a control period.

    target = clip((Q - q_low) / (q_high - q_low), 0, 1), Q = running + waiting requests.
    """

    q_low: NotNegative
    """Outstanding requests up to which there is no congestion."""
    q_high: float
    """Outstanding requests from which congestion is full."""
    max_step: Share
    """Largest change of the level in one control period, up or down."""

    def __post_init__(self) -> None:
        """Check that the thresholds rise."""
        above = f"must be greater than q_low={self.q_low:g}"
        require(self.q_high > self.q_low, "q_high", self.q_high, above)

    def target(self, outstanding: float) -> float:
        """Return the level the law heads for at Q = `outstanding` requests."""
        return min(1.0, max(0.0, (outstanding - self.q_low) / (self.q_high - self.q_low)))

    def start(self) -> Level:
        """Return level 0."""
        return Level(0.0)

    def update(self, state: Level, observation: Observation, dt_s: float) -> Level:
        """Move the level towards the target by at most `max_step`."""
        change = self.target(observation.outstanding) - state.level
        return Level(state.level + min(self.max_step, max(-self.max_step, change)))
