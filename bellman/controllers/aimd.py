"""Additive increase, multiplicative decrease of the length: TCP Reno's form (RFC 5681)."""

from typing import Annotated

from pydantic import Field

from bellman.controllers.window import Scaled, Window, within
from bellman.schema import Positive, Share, schema
from bellman.sensing.growth import require_reported
from bellman.sensing.observation import Observation


@schema
class Aimd:
    """scale + `increase` a period while the latency target holds, x `decrease` when missed.

    The latency is the mean e2e of the requests that finished in the period, so it lags by itself:
    it tells of answers that were asked for one latency ago. Level = 1 - scale.
    """

    target_e2e_s: Positive
    """Mean e2e latency that is to hold, seconds."""
    increase: Share
    """Scale added a period (ours)."""
    decrease: Annotated[float, Field(gt=0, lt=1)]
    """Factor of the scale when the target is missed; Reno's is 0.5."""
    alpha_min: Share
    """Smallest scale: below it the application would not go."""
    period_s: Positive
    """Seconds between two decisions, TCP's round trip: until a shorter answer shows."""

    def start(self) -> Scaled:
        """Return scale 1."""
        return Scaled()

    def update(self, state: Scaled, observation: Observation, dt_s: float) -> Scaled:
        """Decide once a period; a period in which nothing finished decides nothing."""
        require_reported(observation, self, "e2e_sum_s", "e2e_count")
        window = state.window.add(observation, dt_s)
        if window.length_s < self.period_s - dt_s / 2:
            return Scaled(state.scale, window)
        return Scaled(self._decide(state.scale, window), window.next())

    def _decide(self, scale: float, window: Window) -> float:
        e2e_s = window.mean_e2e_s()
        if e2e_s is None:
            return scale
        missed = e2e_s > self.target_e2e_s
        return within(scale * self.decrease if missed else scale + self.increase, self.alpha_min)
