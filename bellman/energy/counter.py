"""A cumulative energy counter that is read now and then, and asked for instants in between."""

from collections import deque
from statistics import median

KEPT = 64
"""Readings to look back on: more than a device can fall behind within the deadline of a reading."""


class CounterWentBack(Exception):
    """A counter is lower than before."""


class EnergyCounter:
    """The readings of one counter. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._first_j: float | None = None
        self._moved_s = 0.0
        self._steps_s: deque[float] = deque(maxlen=KEPT)

    def add(self, time_s: float, joules: float) -> None:
        """Take what the counter said; raises `CounterWentBack`."""
        if self._readings:
            last_s, last_j = self._readings[-1]
            if joules < last_j:
                raise CounterWentBack(f"went back from {last_j:.0f} J to {joules:.0f} J")
            if time_s < last_s:
                return
            if joules > last_j:
                self._steps_s.append(time_s - self._moved_s)
        if self._first_j is None:
            self._first_j = joules
        if not self._readings or joules > self._readings[-1][1]:
            self._moved_s = time_s
        self._readings.append((time_s, joules))

    def begin(self) -> None:
        """Count from the last reading; from the first to come where there is none yet."""
        self._first_j = self._readings[-1][1] if self._readings else None

    def joules_at(self, time_s: float) -> float:
        """Return joules since counting began: a straight line between two readings.

        After the last reading and before the oldest kept one it is theirs.
        """
        assert self._first_j is not None, "never read"
        after_s, after_j = self._readings[-1]
        for before_s, before_j in reversed(self._readings):
            if before_s <= time_s:
                if time_s >= after_s:
                    return after_j - self._first_j
                share = (time_s - before_s) / (after_s - before_s)
                return before_j + share * (after_j - before_j) - self._first_j
            after_s, after_j = before_s, before_j
        return after_j - self._first_j

    @property
    def last_s(self) -> float | None:
        """When it was last read; None before that."""
        return self._readings[-1][0] if self._readings else None

    @property
    def last_j(self) -> float | None:
        """What it said then."""
        return self._readings[-1][1] if self._readings else None

    @property
    def counted_j(self) -> float | None:
        """Joules since counting began, at the last reading."""
        if self._first_j is None or not self._readings:
            return None
        return self._readings[-1][1] - self._first_j

    @property
    def still_s(self) -> float:
        """For how long it has not moved, up to the last reading."""
        return self._readings[-1][0] - self._moved_s if self._readings else 0.0

    @property
    def step_s(self) -> float:
        """The usual time between two moves, as far as the readings can tell; 0 before two moves."""
        return median(self._steps_s) if self._steps_s else 0.0
