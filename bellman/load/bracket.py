"""Bisection for the highest rate that still passes a test which more load only makes harder."""

from collections.abc import Generator, Sequence

Bracket = Generator[Sequence[float], Sequence[bool], tuple[float, float]]
"""Yields rates to try, which do not need each other, and receives whether each of them passed."""


def highest_passing(rates: Sequence[float], resolution: float, limit: float) -> Bracket:
    """Return (highest rate that passed, lowest that failed); their distance <= `resolution`.

    Tries `rates` first, all of them: they are the curve. Beyond the last, rates rise by a quarter
    until one fails or `limit` is passed (then the second is infinite). If the first fails already,
    rates are halved down to `resolution` (then the first is 0).
    """
    in_order = sorted(rates)
    passed = yield in_order
    verdicts = list(zip(in_order, passed, strict=True))
    high = next((rate for rate, passes in verdicts if not passes), float("inf"))
    low = max((rate for rate, passes in verdicts if passes and rate < high), default=0.0)
    while high == float("inf") and low * 1.25 <= limit:
        (passes,) = yield [low * 1.25]
        if passes:
            low *= 1.25
        else:
            high = low * 1.25
    if high == float("inf"):
        return low, high
    while high - low > resolution:
        middle = (low + high) / 2
        (passes,) = yield [middle]
        if passes:
            low = middle
        else:
            high = middle
    return low, high
