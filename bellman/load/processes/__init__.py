"""Arrival processes of rate 1, one a file; a rate profile stretches them to requests per second.

Each is a function of (expected count, burstiness, generator) that returns the arrival instants in
[0, expected). The random ones are stationary: the first gap is the residual of a gap under way, so
that the mean rate is exact from the first second on.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bellman.load.processes.constant import constant
from bellman.load.processes.gamma import gamma
from bellman.load.processes.poisson import poisson
from bellman.load.processes.weibull import weibull

UnitProcess = Callable[[float, float, np.random.Generator], NDArray[np.float64]]

Process = Literal["constant", "poisson", "gamma", "weibull"]
PROCESSES: dict[str, UnitProcess] = {
    "constant": constant,
    "poisson": poisson,
    "gamma": gamma,
    "weibull": weibull,
}
BURSTY: tuple[Process, ...] = ("gamma", "weibull")
"""The processes that `burstiness` shapes; for the others it must stay 1."""
