"""Requests that ended within the last seconds, and how many of them were good."""

from collections import deque


class OutcomeWindow:
    """A sliding window of outcomes; each counts for `length_s` after it came."""

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._outcomes: deque[tuple[float, bool]] = deque()
        self.total = 0
        self.good = 0

    def add(self, good: bool, now_s: float) -> None:
        """Take an outcome."""
        self._outcomes.append((now_s, good))
        self.total += 1
        self.good += good
        self.forget(now_s)

    def forget(self, now_s: float) -> None:
        """Drop what is `length_s` old."""
        while self._outcomes and self._outcomes[0][0] <= now_s - self._length_s:
            self.total -= 1
            self.good -= self._outcomes.popleft()[1]
