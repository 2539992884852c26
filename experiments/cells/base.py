"""A cell: the piece of a study that runs by itself, from a specification to a folder of records."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from bellman import provenance
from bellman.records import TimelineRow
from bellman.source import Source
from experiments.cells.inputs import input_digests
from experiments.parts import Parts

KEY_LENGTH = 16


class Watch(Protocol):
    """What looks on while a cell runs."""

    def begin(self, description: str, duration_s: float | None) -> None:
        """Take note that a cell of `duration_s` seconds of its own time begins; None: not known."""

    def update(self, row: TimelineRow) -> None:
        """Take a sample of the cell that runs."""

    def finish(self, end_s: float | None) -> None:
        """Take note that the cell has ended, after `end_s` seconds of a time of its own, if any."""

    def say(self, line: str) -> None:
        """Take what a user should read at once."""


class Cell(Protocol):
    """A frozen dataclass of plain values, so that another process can run it."""

    @property
    def label(self) -> str:
        """What messages call it."""

    @property
    def axes(self) -> Mapping[str, Any]:
        """Where in the study it stands: a column each in the study's frames."""

    @property
    def source(self) -> Source:
        """Whether a real engine is measured: only one at a time can be."""

    def specification(self) -> dict[str, Any]:
        """Return everything that shapes the records, as plain values."""

    def run(self, folder: Path, parts: Parts, watch: Watch) -> dict[str, Any]:
        """Leave the records in the folder; return what `episode.json` says of them.

        Raises `RunError` where this cell cannot be run, `EngineDied` when the engine is gone.
        """


def cell_key(cell: Cell) -> str:
    """Return the cell's key: a hash of its specification, every file that it names, and the code.

    No record depends on a file that is known by its path only, so that another content of the file
    is another cell.
    """
    specification = cell.specification()
    content = [
        type(cell).__name__,
        specification,
        input_digests(specification),
        provenance.code_digest(),
    ]
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]
