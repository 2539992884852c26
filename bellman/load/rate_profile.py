"""The offered rate over time, and how it stretches a process of rate 1 onto the clock."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of [start_s, end_s) in which the rate moves linearly."""

    start_s: float
    end_s: float
    start_rps: float
    end_rps: float

    @property
    def expected(self) -> float:
        """Expected number of requests: the integral of the rate."""
        return (self.end_s - self.start_s) * (self.start_rps + self.end_rps) / 2


def expected_requests(segments: Sequence[Segment]) -> float:
    """Return the integral of the rate over all segments."""
    return sum(segment.expected for segment in segments)


def to_clock(unit: NDArray[np.float64], segments: Sequence[Segment]) -> NDArray[np.float64]:
    """Map rising instants of a process of rate 1 to seconds, by inverting the integral of the rate.

    A process that is stationary at rate 1 becomes one whose mean rate is the profile's at every
    instant, and that keeps its burstiness. Times are whole microseconds (rounded down), which is
    what a virtual-time loop can meet exactly.
    """
    bounds = np.cumsum([0.0] + [segment.expected for segment in segments])
    times = np.empty_like(unit)
    edges = [*np.searchsorted(unit, bounds[:-1]), len(unit)]
    for number, segment in enumerate(segments):
        inside = slice(edges[number], edges[number + 1])
        slope = (segment.end_rps - segment.start_rps) / (segment.end_s - segment.start_s)
        count = unit[inside] - bounds[number]
        # Solves start_rps t + slope t^2 / 2 = count, in the form that is stable for slope -> 0.
        root = np.sqrt(np.maximum(0.0, segment.start_rps**2 + 2 * slope * count))
        denominator = segment.start_rps + root
        offset = np.divide(2 * count, denominator, out=np.zeros_like(count), where=denominator > 0)
        times[inside] = np.minimum(segment.start_s + offset, segment.end_s)
    # The tiny shift undoes the rounding error of times that are whole microseconds already.
    return np.floor(times * 1e6 + 1e-3) / 1e6
