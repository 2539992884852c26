"""The congestion signal: one number in [0, 1], its age, and how it travels in a response header."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

HEADER = "x-bellman-congestion"
"""Response header that carries the level, as a plain decimal number."""
LONGEST = 32
"""Characters of the longest value that is read: a double's shortest exact form has fewer."""
PLAIN_DECIMAL = re.compile(r"0+(\.[0-9]+)?|0*1(\.0+)?")
"""ASCII digits with an optional fraction, 0 to 1: no sign, exponent, bare point or underscore."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A level in [0, 1] and when it was published or received, in seconds of the run's clock."""

    level: float
    time_s: float


@lru_cache(maxsize=64)
def format_level(level: float) -> str:
    """Write a level as the header's value (four decimals: finer than any ladder of budgets).

    Raises ValueError for a number outside [0, 1], which no receiver would take.
    """
    if not 0.0 <= level <= 1.0:
        raise ValueError(f"{level} is no level: it must be in [0, 1]")
    return f"{abs(level):.4f}"  # abs: -0.0 is in the range, its sign is no part of a level


def parse_level(values: Sequence[str]) -> float | None:
    """Read the level from all values of the header in one response.

    Returns None for anything but exactly one plain decimal number in [0, 1]: a missing header,
    two headers, `nan`, `1e-3`, `-3`, `.5`, `0_1` or `0,5` must change nothing at the receiver.
    Blanks and tabs around it are no part of a field's value (RFC 9110, section 5.5).
    """
    if len(values) != 1:
        return None
    return _level_of(values[0].strip(" \t"))


@lru_cache(maxsize=64)  # a level stands in every response until the law runs again
def _level_of(value: str) -> float | None:
    if len(value) > LONGEST or PLAIN_DECIMAL.fullmatch(value) is None:
        return None
    return float(value)


class SignalReceiver:
    """The application's end: keeps the last valid signal and counts what it could not use."""

    def __init__(self) -> None:
        self.last: Signal | None = None
        self.received = 0
        self.absent = 0
        self.malformed = 0

    def receive(self, values: Sequence[str], now_s: float) -> None:
        """Take the header's values of one response (or one poll) that arrived at `now_s`."""
        level = parse_level(values)
        if level is not None:
            self.received += 1
            self.last = Signal(level, now_s)
        elif values:
            self.malformed += 1
        else:
            self.absent += 1
