"""The files that an episode writes while it goes on."""

from contextlib import ExitStack
from pathlib import Path
from typing import Self

from bellman.app.texts import TextStore
from bellman.records import JsonLinesWriter, TimelineRow
from bellman.source import Source

LINES = ("requests", "timeline", "texts")
"""Names of the JSON Lines files."""


class Recorder:
    """Open record files of an episode's folder: requests, timeline and texts, a line each.

    What is simulated comes out the same again, and may be lost until the files are closed.
    """

    def __init__(self, folder: Path, source: Source) -> None:
        self.requests, self._timeline, self._texts = (
            JsonLinesWriter(folder / f"{name}.jsonl", gathered=source == "simulated")
            for name in LINES
        )
        self.texts = TextStore(self._texts)

    def add_row(self, row: TimelineRow) -> None:
        """Append a row of the timeline."""
        self._timeline.write(row)

    @property
    def lines(self) -> dict[str, int]:
        """How many lines were written, by the file's name: a done episode has them all."""
        writers = (self.requests, self._timeline, self._texts)
        return {name: writer.lines for name, writer in zip(LINES, writers, strict=True)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the files; raises OSError where what was gathered cannot be written."""
        with ExitStack() as stack:
            for writer in (self.requests, self._timeline, self._texts):
                stack.callback(writer.close)
