"""What a run folder holds, cell by cell: its plan, and how far each cell came."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import read
from bellman.errors import RunError
from bellman.run_files import BEGUN, DONE, EPISODES, PLAN

EPISODE, CAPACITY = "EpisodeCell", "CapacityCell"


@dataclass(frozen=True)
class PlannedCell:
    """One line of the plan."""

    key: str
    kind: str
    label: str
    axes: dict[str, Any]
    folder: Path

    @property
    def content(self) -> dict[str, Any] | None:
        """What the cell's last file says; None where it is not done."""
        found: dict[str, Any] | None = read.json_file(self.folder / DONE, None)
        return found

    @property
    def begun(self) -> dict[str, Any] | None:
        """What an episode said when it began; None where it never did."""
        found: dict[str, Any] | None = read.json_file(self.folder / BEGUN, None)
        return found


def read_plan(folder: Path) -> list[PlannedCell]:
    """Return the cells of a run folder in their order; raises `RunError` where there is no plan."""
    file = folder / PLAN
    if not file.exists():
        raise RunError(f"{folder}: no {PLAN}; give the folder of a run")
    cells = []
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        try:
            entry = json.loads(line)
            place = folder / EPISODES / entry["id"]
            cells.append(
                PlannedCell(entry["id"], entry["kind"], entry["label"], entry["axes"], place)
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RunError(f"{file}, line {number} cannot be read: {error}") from None
    return cells
