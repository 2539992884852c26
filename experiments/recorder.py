"""The files that an episode writes while it goes on."""

from contextlib import ExitStack
from pathlib import Path
from typing import Self

from bellman.app.texts import TextStore
from bellman.records import AttemptRecord, JsonLinesWriter, TimelineRow
from bellman.source import Source

LINES = ("requests", "timeline", "texts")
"""Names of the JSON Lines files that every episode has."""
REPLICAS, ATTEMPTS = "replicas", "attempts"
"""Those of an episode on several engines, and of one whose requests may be sent again."""


class Recorder:
    """Open record files of an episode's folder: requests, timeline and texts, a line each; and
    attempts and replicas, where there are any.

    What is simulated comes out the same again, and may be lost until the files are closed.
    """

    def __init__(self, folder: Path, source: Source) -> None:
        self._folder = folder
        self._gathered = source == "simulated"
        self._writers: dict[str, JsonLinesWriter] = {}
        self.requests, self._timeline, texts = (self._writer(name) for name in LINES)
        self.texts = TextStore(texts)

    def add_row(self, row: TimelineRow) -> None:
        """Append a row of the timeline, or of one replica's."""
        (self._timeline if row.replica is None else self._writer(REPLICAS)).write(row)

    def add_attempt(self, attempt: AttemptRecord) -> None:
        """Append an attempt."""
        self._writer(ATTEMPTS).write(attempt)

    def _writer(self, name: str) -> JsonLinesWriter:
        if name not in self._writers:
            path = self._folder / f"{name}.jsonl"
            self._writers[name] = JsonLinesWriter(path, gathered=self._gathered)
        return self._writers[name]

    @property
    def lines(self) -> dict[str, int]:
        """How many lines were written, by the file's name: a done episode has them all."""
        return {name: writer.lines for name, writer in self._writers.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the files; raises OSError where what was gathered cannot be written."""
        with ExitStack() as stack:
            for writer in self._writers.values():
                stack.callback(writer.close)
