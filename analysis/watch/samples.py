"""What an episode's files say while it goes on: its last samples, and how its requests end."""

import math
from collections import Counter, deque
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from analysis.metrics import percentile
from analysis.watch.tail import Tail

HISTORY = 600
"""Samples that are kept for the curves."""
TIMELINE_BYTES = 2**18
"""Of a timeline that is long already when the watch begins, so much of its end is read."""
LATEST = 200
"""Requests whose latency is shown: those that ended last."""


class Sample(msgspec.Struct):
    """As much of a row of the timeline as is shown."""

    time_s: float
    phase: str
    level: float | None
    waiting: int | None
    running: int | None
    word_budget: int | None
    energy_j: float | None
    power_w: float | None


class Ended(msgspec.Struct):
    """As much of a request's record as is counted."""

    status: str
    intended_s: float
    last_token_s: float | None

    @property
    def latency_s(self) -> float:
        """From the intended send time; infinite where it did not end ok."""
        answered = self.status == "ok" and self.last_token_s is not None
        return self.last_token_s - self.intended_s if answered else math.inf  # type: ignore[operator]


Line = TypeVar("Line", Sample, Ended)


class EpisodeFiles:
    """Follows the files of one episode."""

    def __init__(self, folder: Path) -> None:
        self._timeline = Tail(folder / "timeline.jsonl", last_bytes=TIMELINE_BYTES)
        self._requests = Tail(folder / "requests.jsonl")
        self.samples: deque[Sample] = deque(maxlen=HISTORY)
        self.ended: Counter[str] = Counter()
        """Requests by status."""
        self._latencies_s: deque[float] = deque(maxlen=LATEST)
        self.unreadable_lines = 0

    @property
    def behind_bytes(self) -> int:
        """Bytes of requests that were written and are not counted yet."""
        return self._requests.behind_bytes

    @property
    def latencies(self) -> int:
        """How many requests `percentile_s` is over."""
        return len(self._latencies_s)

    def percentile_s(self, percent: float) -> float | None:
        """Return a percentile of the last latencies; None before the first."""
        return percentile(np.array(self._latencies_s), percent)

    def look(self) -> None:
        """Take what was appended since."""
        rows = self._timeline.more()
        if rows is None:
            self.samples.clear()
        self.samples.extend(self._read(rows or [], SAMPLES))
        records = self._requests.more()
        if records is None:
            self.ended.clear()
            self._latencies_s.clear()
        for request in self._read(records or [], REQUESTS):
            self.ended[request.status] += 1
            self._latencies_s.append(request.latency_s)

    def _read(self, lines: list[bytes], decoder: msgspec.json.Decoder[Line]) -> list[Line]:
        found = []
        for line in lines:
            try:
                found.append(decoder.decode(line))
            except (msgspec.MsgspecError, ValueError):
                self.unreadable_lines += 1
        return found


SAMPLES = msgspec.json.Decoder(Sample)
REQUESTS = msgspec.json.Decoder(Ended)
