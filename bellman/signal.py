"""The congestion signal: one number in [0, 1], its age, and how it travels in a response header."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

HEADER = "x-bellman-congestion"
"""Response header that carries the level, as a plain decimal number."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A level in [0, 1] and when it was published or received, in seconds of the run's clock."""

    level: float
    time_s: float


def format_level(level: float) -> str:
    """Write a level as the header's value (four decimals: finer than any ladder of budgets)."""
    return f"{level:.4f}"


def parse_level(values: Sequence[str]) -> float | None:
    """Read the level from all values of the header in one response.

    Returns None for anything but exactly one finite decimal number in [0, 1]: a missing header,
    two headers, `nan`, `1e309`, `-3` or `0,5` must change nothing at the receiver.
    """
    if len(values) != 1:
        return None
    try:
        level = float(values[0])
    except ValueError:
        return None
    return level if math.isfinite(level) and 0.0 <= level <= 1.0 else None


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
