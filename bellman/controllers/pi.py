"""A proportional integral law on the queue's delay: the form of PIE (RFC 8033)."""

from dataclasses import dataclass

from bellman.schema import NotNegative, Positive, schema
from bellman.sensing.growth import require_reported
from bellman.sensing.observation import Observation


@dataclass(frozen=True, slots=True)
class PiState:
    """State: the level, which stands for PIE's drop probability, and the last delay."""

    level: float = 0.0
    delay_s: float = 0.0


@schema
class Pi:
    """level += integral_gain (d - target) + proportional_gain (d - d_old), kept in [0, 1].

    d is the age of the request that has waited longest for a place in the batch: RFC 8033's delay
    by timestamps. A batch with room for all has no such delay however slow it gets.
    """

    target_queue_delay_s: Positive
    """Delay that is to hold, seconds (PIE: 15 ms of a network's queue)."""
    integral_gain: NotNegative
    """Per second of delay, an update: RFC 8033's alpha."""
    proportional_gain: NotNegative
    """Per second of delay, an update: RFC 8033's beta."""

    def start(self) -> PiState:
        """Return level 0."""
        return PiState()

    def update(self, state: PiState, observation: Observation, dt_s: float) -> PiState:
        """Take one step of the recursion."""
        require_reported(observation, self, "oldest_waiting_s")
        delay_s = observation.oldest_waiting_s or 0.0
        change = self.integral_gain * (delay_s - self.target_queue_delay_s)
        change += self.proportional_gain * (delay_s - state.delay_s)
        return PiState(min(1.0, max(0.0, state.level + change)), delay_s)
