"""Brownout's dimmer (Klein et al., ICSE 2014): a control loop with an estimated gain."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from bellman.controllers.window import NOTHING_SEEN, Window
from bellman.schema import Positive, Share, schema
from bellman.sensing.growth import require_reported
from bellman.sensing.observation import Observation

EXCITING = 0.01
"""Below this dimmer an observation says nothing of the gain: latency = gain x 0."""
LARGEST_COVARIANCE = 1000.0
LEAST_GAIN = 1e-3
"""Share of the target: a gain is never less, so never zero or negative."""


@dataclass(frozen=True, slots=True)
class DimmerState:
    """State: the dimmer, the estimate of its gain, and the last observation."""

    dimmer: float
    gain_s: float
    """Estimated latency at dimmer 1, seconds."""
    covariance: float
    window: Window = NOTHING_SEEN

    @property
    def level(self) -> float:
        """1 - dimmer."""
        return 1.0 - self.dimmer


@schema
class Dimmer:
    """Latency = gain x dimmer, the gain by recursive least squares; dimmer += (1 - pole) e / gain.

    e = target - the mean e2e of the requests that finished in the period, which lags by itself,
    while the model takes latency for immediate. The dimmer is the scale of the answers' length;
    level = 1 - dimmer. Two known traps are guarded: at dimmer 0 nothing is learned and the
    covariance would grow without end, so such periods do not enter the estimate and the
    covariance is bounded; an estimate that is zero or negative would turn the loop around, so the
    gain has a floor.
    """

    target_e2e_s: Positive
    """Mean e2e latency that is to hold, seconds."""
    pole: Annotated[float, Field(ge=0, lt=1)]
    """Of the closed loop: 0 goes at once, near 1 slowly (Klein: 0.9)."""
    forgetting: Share
    """What an observation weighs after one more period (Klein: 0.95)."""

    def start(self) -> DimmerState:
        """Return dimmer 1, the gain at which the target would just hold, and full doubt of it."""
        return DimmerState(1.0, self.target_e2e_s, LARGEST_COVARIANCE)

    def update(self, state: DimmerState, observation: Observation, dt_s: float) -> DimmerState:
        """Estimate the gain and move; a period in which nothing finished changes nothing."""
        require_reported(observation, self, "e2e_sum_s", "e2e_count")
        window = state.window.add(observation, dt_s)
        e2e_s = window.mean_e2e_s() if window.length_s > 0 else None
        dimmer, gain_s, covariance = state.dimmer, state.gain_s, state.covariance
        if e2e_s is not None:
            if dimmer > EXCITING and window.request_s > 0:
                gain_s, covariance = self._estimate(state, e2e_s)
            dimmer += (1 - self.pole) * (self.target_e2e_s - e2e_s) / gain_s
            dimmer = min(1.0, max(0.0, dimmer))
        return DimmerState(dimmer, gain_s, covariance, window.next())

    def _estimate(self, state: DimmerState, e2e_s: float) -> tuple[float, float]:
        """Return gain and covariance after one more pair of dimmer and latency."""
        spread = state.covariance * state.dimmer
        correction = spread / (self.forgetting + spread * state.dimmer)
        gain_s = state.gain_s + correction * (e2e_s - state.gain_s * state.dimmer)
        covariance = state.covariance * (1 - correction * state.dimmer) / self.forgetting
        least_s = LEAST_GAIN * self.target_e2e_s
        return max(least_s, gain_s), min(LARGEST_COVARIANCE, covariance)
