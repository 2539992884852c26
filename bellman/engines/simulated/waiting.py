"""The queue in front of the batch: first come first served, or by priority."""

from collections import deque
from heapq import heappop, heappush
from typing import Protocol

from bellman.engines.simulated.sequence import Sequence


class Waiting(Protocol):
    """Waiting sequences in the order in which they are admitted; aborted ones stay in it."""

    def first(self) -> Sequence | None:
        """Return the next one."""

    def pop(self) -> None:
        """Take the next one out."""

    def add(self, sequence: Sequence) -> None:
        """Queue a new one."""

    def put_back(self, sequence: Sequence) -> None:
        """Queue one that was preempted."""

    def oldest_arrival_s(self) -> float | None:
        """Return when the one arrived that has waited longest; None where none waits."""


class FirstCome:
    """Order of arrival; preempted ones go to the front."""

    def __init__(self) -> None:
        self._queue: deque[Sequence] = deque()

    def first(self) -> Sequence | None:
        """Return the next one."""
        return self._queue[0] if self._queue else None

    def pop(self) -> None:
        """Take the next one out."""
        self._queue.popleft()

    def add(self, sequence: Sequence) -> None:
        """Queue a new one."""
        self._queue.append(sequence)

    def put_back(self, sequence: Sequence) -> None:
        """Queue one that was preempted."""
        self._queue.appendleft(sequence)

    def oldest_arrival_s(self) -> float | None:
        """Return the first's arrival: those that were preempted came before all others."""
        return next((one.arrival_s for one in self._queue if not one.aborted), None)


class ByPriority:
    """The lowest priority number first, then order of arrival; preempted ones have no privilege."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, float, int, Sequence]] = []
        self._added = 0

    def first(self) -> Sequence | None:
        """Return the next one."""
        return self._heap[0][3] if self._heap else None

    def pop(self) -> None:
        """Take the next one out."""
        heappop(self._heap)

    def add(self, sequence: Sequence) -> None:
        """Queue a new one."""
        self._added += 1
        sequence.number = self._added
        self.put_back(sequence)

    def put_back(self, sequence: Sequence) -> None:
        """Queue one that was preempted."""
        key = (sequence.priority, sequence.arrival_s, sequence.number)
        heappush(self._heap, (*key, sequence))

    def oldest_arrival_s(self) -> float | None:
        """Return the earliest arrival, wherever in the queue."""
        return min((entry[1] for entry in self._heap if not entry[-1].aborted), default=None)
