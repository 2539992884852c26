"""Netflix's Gradient2 limit (concurrency-limits) on the length of the answers."""

from dataclasses import dataclass

from bellman.controllers.window import NOTHING_SEEN, Window, within
from bellman.schema import Count, Positive, Share, schema
from bellman.sensing.growth import require_reported
from bellman.sensing.observation import Observation

STEEPEST = 0.5
"""The gradient is at least this: one decision halves the scale at most."""
DRIFTED = 2.0
RECOVERY = 0.95
"""While the long average is more than twice the short one it is brought down by this factor."""
WARM_UP = 10
"""Periods over which the long average is the plain mean."""


@dataclass(frozen=True, slots=True)
class Averages:
    """State: the scale, the long average of the latency, and the last observation."""

    scale: float = 1.0
    long_s: float = 0.0
    averaged: int = 0
    """Periods in the average, counted while it warms up."""
    window: Window = NOTHING_SEEN

    @property
    def level(self) -> float:
        """1 - scale."""
        return 1.0 - self.scale


@schema
class Gradient2:
    """gradient = clamp(tolerance x long / short, 0.5, 1); scale -> scale x gradient + headroom.

    `short` is the latency of a token in the last period (`Window.token_latency_s`), `long` its
    exponential average over `long_periods`; the scale moves by `smoothing` of the way. The law
    knows no target: what lasts as long as its average becomes normal. Level = 1 - scale.
    """

    tolerance: Positive
    """How far the latency may rise above its average (Netflix: 1.5)."""
    headroom: Share
    """Scale added each time, the queue that is allowed (ours; Netflix: 4 requests)."""
    smoothing: Share
    """Share of the way that the scale moves at once (Netflix: 0.2)."""
    long_periods: Count
    """Periods of the long average (Netflix: 600 samples)."""
    alpha_min: Share
    """Smallest scale: below it the application would not go."""

    def start(self) -> Averages:
        """Return scale 1."""
        return Averages()

    def update(self, state: Averages, observation: Observation, dt_s: float) -> Averages:
        """Follow the gradient; a period without tokens or requests gives none."""
        require_reported(observation, self, "generated_tokens_total")
        window = state.window.add(observation, dt_s)
        short_s = window.token_latency_s()
        if short_s is None:
            idle = window.length_s > 0 and window.request_s == 0
            scale = self._towards(state.scale, 1.0) if idle else state.scale
            return Averages(scale, state.long_s, state.averaged, window.next())
        averaged = min(WARM_UP + 1, state.averaged + 1)
        weight = 1 / averaged if averaged <= WARM_UP else 2 / (self.long_periods + 1)
        long_s = state.long_s + weight * (short_s - state.long_s)
        gradient = max(STEEPEST, min(1.0, self.tolerance * long_s / short_s))
        scale = self._towards(state.scale, gradient)
        if long_s > DRIFTED * short_s:
            long_s *= RECOVERY
        return Averages(scale, long_s, averaged, window.next())

    def _towards(self, scale: float, gradient: float) -> float:
        wanted = scale * gradient + self.headroom
        return within(scale + self.smoothing * (wanted - scale), self.alpha_min)
