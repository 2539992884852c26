"""Weibull-distributed gaps, which fit the arrivals of production LLM clients (ServeGen, 2025)."""

import math

import numpy as np
from numpy.typing import NDArray

from bellman.load.processes.renewal import renewal


def weibull(
    expected: float, burstiness: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return instants with Weibull gaps of shape `burstiness` k: 1 is Poisson, below 1 is burstier.

    Squared coefficient of variation of the gaps, and dispersion index of counts over a long time:
    gamma(1 + 2/k) / gamma(1 + 1/k)^2 - 1.
    """
    shape = burstiness
    scale = 1 / math.gamma(1 + 1 / shape)
    # The gap x under way at time 0 is length-biased: (x / scale)^k is gamma of shape 1 + 1/k.
    first_gap = generator.uniform() * scale * generator.gamma(1 + 1 / shape) ** (1 / shape)
    return renewal(expected, first_gap, lambda n: scale * generator.weibull(shape, n))
