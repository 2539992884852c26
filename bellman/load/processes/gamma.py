"""Gamma-distributed gaps, as `vllm bench serve --burstiness`."""

import numpy as np
from numpy.typing import NDArray

from bellman.load.processes.renewal import renewal


def gamma(
    expected: float, burstiness: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return instants with gamma gaps of shape `burstiness` k: 1 is Poisson, below 1 is burstier.

    Squared coefficient of variation of the gaps, and dispersion index of counts over a long time:
    1 / k.
    """
    shape, scale = burstiness, 1 / burstiness
    # The gap under way at time 0 is length-biased: gamma of shape k + 1.
    first_gap = generator.uniform() * generator.gamma(shape + 1, scale)
    return renewal(expected, first_gap, lambda n: generator.gamma(shape, scale, n))
