"""Instants of a renewal process from its first gap and a sampler of the others."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def renewal(
    expected: float, first_gap: float, draw_gaps: Callable[[int], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return the instants in [0, expected) of a process with mean gap 1."""
    instants = np.array([first_gap])
    while instants[-1] < expected:
        gaps = draw_gaps(int(1.1 * (expected - instants[-1])) + 100)
        instants = np.concatenate([instants, instants[-1] + np.cumsum(gaps)])
    return instants[instants < expected]
