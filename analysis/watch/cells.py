"""The cells of a run while it goes on: planned, begun, done, and what the done ones say."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.plan import PlannedCell, read_plan
from bellman.errors import RunError
from bellman.run_files import DONE, EPISODES, PLAN

READ_AT_ONCE = 200
"""Last files of cells that one look reads."""
FIRST, ERROR = "specification.json", "error.txt"
"""A cell's first file, and the one that an error of ours leaves."""


@dataclass(frozen=True)
class DoneCell:
    """What is shown of a cell that is done."""

    kind: str
    source: str | None
    wall_s: float
    """From its first file to its last, by the clock on the wall."""
    energy_j: float | None
    """Of all its counted time; None where nothing was measured, or it is no episode."""
    energy_reason: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class OpenCell:
    """A cell that has begun and is not done."""

    cell: PlannedCell
    since_s: float
    """When it began, in seconds of the epoch."""
    failed: bool
    """Whether it left an error."""


@dataclass
class Cells:
    """Follows the cells of one run folder."""

    folder: Path
    planned: dict[str, PlannedCell] = field(default_factory=dict)
    """By key, in the plan's order."""
    done: dict[str, DoneCell] = field(default_factory=dict)
    open: list[OpenCell] = field(default_factory=list)
    """The one that began last first."""
    unreadable: str | None = None
    _plan_of: tuple[int, int] | None = None

    def look(self) -> None:
        """See what has come since."""
        self._read_plan()
        begun = _begun(self.folder / EPISODES, set(self.done))
        self.done = {key: cell for key, cell in self.done.items() if key in begun}
        missing = [key for key in self.planned if key in begun and key not in self.done]
        ended = [key for key in missing if (self.folder / EPISODES / key / DONE).exists()]
        for key in ended[:READ_AT_ONCE]:
            self._read_done(self.planned[key])
        still_open = [self.planned[key] for key in missing if key not in ended]
        self.open = [
            OpenCell(cell, begun[cell.key], (cell.folder / ERROR).exists())
            for cell in sorted(still_open, key=lambda cell: begun[cell.key], reverse=True)
        ]

    def _read_plan(self) -> None:
        try:
            status = (self.folder / PLAN).stat()
        except OSError:
            self.planned, self._plan_of = {}, None
            return
        if self._plan_of == (status.st_mtime_ns, status.st_size):
            return
        try:
            self.planned = {cell.key: cell for cell in read_plan(self.folder)}
            self.unreadable = None
        except (RunError, OSError, ValueError) as error:
            self.unreadable = str(error)
        self._plan_of = (status.st_mtime_ns, status.st_size)

    def _read_done(self, cell: PlannedCell) -> None:
        try:
            content = cell.content or {}
            first = (cell.folder / FIRST).stat().st_mtime
            wall_s = (cell.folder / DONE).stat().st_mtime - first
            self.done[cell.key] = done_cell(cell.kind, content, wall_s)
        except (RunError, OSError) as error:
            self.unreadable = str(error)
        except (AttributeError, KeyError, TypeError) as error:
            self.unreadable = f"{cell.folder / DONE} is another version's ({error!r})"


def done_cell(kind: str, content: dict[str, Any], wall_s: float) -> DoneCell:
    """Return what is shown of a cell's last file."""
    windows = content.get("energy", {}).get("windows", [])
    total: dict[str, Any] = next((w for w in windows if w["window"] == "total"), {})
    return DoneCell(
        kind=kind,
        source=content.get("source"),
        wall_s=wall_s,
        energy_j=total.get("energy_j"),
        energy_reason=total.get("reason"),
        warnings=(*content.get("invalid_reasons", ()), *content.get("warnings", ())),
    )


def _begun(episodes: Path, done: set[str]) -> dict[str, float]:
    """Return the cells that have begun, each with the time of its first file (0 for done ones)."""
    begun = {}
    try:
        folders = list(episodes.iterdir())
    except OSError:
        return {}
    for folder in folders:
        try:
            known = folder.name in done
            begun[folder.name] = 0.0 if known else (folder / FIRST).stat().st_mtime
        except OSError:
            continue
    return begun
