"""TCP Vegas on the length of the answers, after Netflix's concurrency-limits."""

from dataclasses import dataclass

from bellman.controllers.window import NOTHING_SEEN, Window, within
from bellman.errors import require
from bellman.schema import Positive, Share, schema
from bellman.sensing.growth import require_reported
from bellman.sensing.observation import Observation


@dataclass(frozen=True, slots=True)
class VegasState:
    """State: the scale, the lowest latency so far, and what this round trip saw."""

    scale: float = 1.0
    unloaded_s: float | None = None
    """rtt0: the least latency of a token that any round trip had."""
    window: Window = NOTHING_SEEN

    @property
    def level(self) -> float:
        """1 - scale."""
        return 1.0 - self.scale


@schema
class Vegas:
    """queue = scale x (1 - rtt0 / rtt); scale + `step` below `low`, - `step` above `high`.

    rtt is the latency of a token over the last round trip (`Window.token_latency_s`) and rtt0 the
    least so far, so a first round trip under load makes the law blind to that load. A batch slows
    its tokens down before anything waits: the thresholds must allow for that. Level = 1 - scale.
    """

    low: Share
    """Queued share of the length up to which the scale grows (ours)."""
    high: Share
    """Queued share from which it shrinks (ours)."""
    step: Share
    """Change of the scale a round trip (ours)."""
    alpha_min: Share
    """Smallest scale: below it the application would not go."""
    round_trip_s: Positive
    """Seconds between two decisions."""

    def __post_init__(self) -> None:
        """Check that the thresholds rise."""
        require(self.high > self.low, "high", self.high, f"must be greater than low={self.low:g}")

    def start(self) -> VegasState:
        """Return scale 1."""
        return VegasState()

    def update(self, state: VegasState, observation: Observation, dt_s: float) -> VegasState:
        """Decide once a round trip; one in which the engine stood still counts as unloaded."""
        require_reported(observation, self, "generated_tokens_total")
        window = state.window.add(observation, dt_s)
        if window.length_s < self.round_trip_s - dt_s / 2:
            return VegasState(state.scale, state.unloaded_s, window)
        scale, unloaded_s = state.scale, state.unloaded_s
        token_s = window.token_latency_s()
        if token_s is not None:
            unloaded_s = token_s if unloaded_s is None else min(unloaded_s, token_s)
            scale += self._change(scale * (1 - unloaded_s / token_s))
        elif window.request_s == 0:
            scale += self.step
        return VegasState(within(scale, self.alpha_min), unloaded_s, window.next())

    def _change(self, queue: float) -> float:
        if queue < self.low:
            return self.step
        return -self.step if queue > self.high else 0.0
