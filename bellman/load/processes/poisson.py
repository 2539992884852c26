"""Poisson arrivals: independent users."""

import numpy as np
from numpy.typing import NDArray

from bellman.load.processes.renewal import renewal


def poisson(
    expected: float, burstiness: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return instants with exponential gaps; dispersion index 1."""
    return renewal(expected, generator.exponential(), lambda n: generator.exponential(size=n))
