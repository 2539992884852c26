"""Bisection for the highest rate that still passes a test which more load only makes harder."""

from collections.abc import Callable


def highest_passing(
    passes: Callable[[float], bool], rates: list[float], resolution: float, limit: float
) -> tuple[float, float]:
    """Return (highest rate that passed, lowest that failed); their distance <= `resolution`.

    Tries `rates` first, in rising order, all of them: they are the curve. Beyond the last, rates
    rise by a quarter until one fails or `limit` is passed (then the second is infinite). If the
    first fails already, rates are halved down to `resolution` (then the first is 0).
    """
    verdicts = [(rate, passes(rate)) for rate in sorted(rates)]
    low = 0.0
    high = next((rate for rate, passed in verdicts if not passed), float("inf"))
    low = max((rate for rate, passed in verdicts if passed and rate < high), default=0.0)
    while high == float("inf") and low * 1.25 <= limit:
        if passes(low * 1.25):
            low *= 1.25
        else:
            high = low * 1.25
    if high == float("inf"):
        return low, high
    while high - low > resolution:
        middle = (low + high) / 2
        if passes(middle):
            low = middle
        else:
            high = middle
    return low, high
