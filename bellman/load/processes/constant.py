"""Equally spaced arrivals."""

import math

import numpy as np
from numpy.typing import NDArray


def constant(
    expected: float, burstiness: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return 0, 1, 2, ... below `expected`; dispersion index 0."""
    return np.arange(math.ceil(expected), dtype=np.float64)
