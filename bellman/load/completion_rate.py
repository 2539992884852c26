"""Completions per second over a window, and how exact that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from scipy.special import stdtrit  # of Student's t; scipy.stats takes a second to import

PARTS = 10
"""The window is cut into so many parts of equal length, whose rates are taken as independent."""
CONFIDENCE = 0.95
INTERVAL_METHOD = f"{CONFIDENCE:.0%}, Student's t over the rates of {PARTS} equal parts of the time"


@dataclass(frozen=True, slots=True)
class CompletionRate:
    """Completed requests / length of the window, with its interval by batch means.

    Source of the method: Law, Simulation Modeling and Analysis, 5th edition, 9.5.3. Successive
    completions depend on each other, the counts of long parts hardly do.
    """

    rate_rps: float
    low_rps: float | None
    """Null where there are fewer completions than parts: then nothing is known of the spread."""
    high_rps: float | None
    completed: int


def completion_rate(ended_s: Sequence[float], start_s: float, end_s: float) -> CompletionRate:
    """Return the rate of the completions in (start, end], times in seconds of one clock."""
    part_s = (end_s - start_s) / PARTS
    counts = [0] * PARTS
    for time_s in ended_s:
        if start_s < time_s <= end_s:
            counts[min(PARTS - 1, int((time_s - start_s) / part_s))] += 1
    completed = sum(counts)
    rate_rps = completed / (end_s - start_s)
    if completed < PARTS:
        return CompletionRate(rate_rps, None, None, completed)
    rates_rps = [count / part_s for count in counts]
    quantile = float(stdtrit(PARTS - 1, (1 + CONFIDENCE) / 2))
    half_rps = quantile * stdev(rates_rps) / PARTS**0.5
    return CompletionRate(rate_rps, max(0.0, rate_rps - half_rps), rate_rps + half_rps, completed)
