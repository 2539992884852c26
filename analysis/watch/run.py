"""Looks at a run folder again and again; reads what is new, and holds and writes nothing."""

import time
from datetime import datetime
from pathlib import Path
from typing import Any

from analysis import read
from analysis.watch.cells import Cells, OpenCell
from analysis.watch.energy import energy_so_far
from analysis.watch.episode import OpenEpisode
from analysis.watch.time_left import TimeLeft, time_left
from analysis.watch.view import CellView, RunView, State
from bellman.errors import RunError
from bellman.folder_lock import Holder, holder
from bellman.run_folder import RUNNING, read_status

SHOWN = 8
"""Open cells that are shown, and looked into."""
WARNINGS = 20
SIMULATED = (
    "Simulated episodes are written in blocks of 256 KiB and at their ends: their samples come in "
    "jumps, in simulated time, and a short episode is seen when it is done."
)
NOBODY = "no process holds this folder"


class RunWatch:
    """Follows one run folder, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cells = Cells(folder)
        self._open: dict[str, OpenEpisode] = {}
        self._config: dict[str, Any] = {}

    def look(self) -> RunView:
        """Read what is new, a bounded amount, and return what there is to see."""
        cells = self._cells
        cells.look()
        notes = [cells.unreadable] if cells.unreadable else []
        status = self._status(notes)
        self._read_config(notes)
        held = holder(self._folder)
        states = [self._state_of(place, one, held) for place, one in enumerate(cells.open)]
        views = self._look_into(cells.open[:SHOWN], states)
        sources = {cell.source for cell in cells.done.values()} | {view.source for view in views}
        if "simulated" in sources:
            notes.append(SIMULATED)
        if len(cells.open) > SHOWN:
            notes.append(f"{len(cells.open) - SHOWN} more cells are open")
        energy = energy_so_far(cells.done.values())
        left = self._time_left(states, views, held)
        return RunView(
            folder=str(self._folder),
            title=str(self._config.get("name") or self._folder.name),
            state=state_text(self._folder, status, held),
            holds=held.holds,
            source=" and ".join(sorted(filter(None, sources))) or "not known before an episode",
            cells_planned=len(cells.planned),
            cells_done=len(cells.done),
            cells_failed=sum(state != "in progress" for state in states),
            energy_j=energy.joules,
            energy_text=energy.text,
            left_s=left.seconds,
            left_how=left.how,
            open=views,
            warnings=self._warnings(),
            notes=notes,
            looked_at=datetime.now().astimezone().strftime("%H:%M:%S"),
        )

    def _look_into(self, shown: list[OpenCell], states: list[State]) -> list[CellView]:
        """Look into open cells; those that are open no more are forgotten."""
        self._open = {
            one.cell.key: self._open.get(one.cell.key) or OpenEpisode(one.cell) for one in shown
        }
        return [
            self._open[one.cell.key].look(state) for one, state in zip(shown, states, strict=False)
        ]

    def _state_of(self, place: int, one: OpenCell, held: Holder) -> State:
        """Return what an open cell is: a run goes on to the next one where a cell has failed."""
        serial = "processes" not in self._executor and "ray" not in self._executor
        if one.failed or (held.holds is not False and serial and place > 0):
            return "failed"
        return "cut" if held.holds is False else "in progress"

    @property
    def _executor(self) -> str:
        return str((self._config.get("executor") or {}).get("_target_"))

    def _time_left(self, states: list[State], views: list[CellView], held: Holder) -> TimeLeft:
        if held.holds is False:
            return TimeLeft(None, NOBODY)
        cells = self._cells
        now_s = time.time()
        elapsed_s = {
            one.cell.key: now_s - one.since_s
            for one, state in zip(cells.open, states, strict=True)
            if state == "in progress"
        }
        schedules = [view.schedule for view in views if view.source == "measured"]
        schedule_s = next((known.end_s for known in schedules if known is not None), None)
        return time_left(list(cells.planned.values()), cells.done, elapsed_s, schedule_s)

    def _warnings(self) -> list[str]:
        """Return what done episodes warn of, each once, with how many say so."""
        counts: dict[str, int] = {}
        for cell in self._cells.done.values():
            for warning in cell.warnings:
                counts[warning] = counts.get(warning, 0) + 1
        said = [
            warning if count == 1 else f"{warning} ({count} episodes)"
            for warning, count in counts.items()
        ]
        more = len(said) - WARNINGS
        return said[:WARNINGS] + ([f"and {more} more"] if more > 0 else [])

    def _status(self, notes: list[str]) -> dict[str, Any] | None:
        try:
            return read_status(self._folder)
        except (RunError, OSError) as error:
            notes.append(str(error))
            return None

    def _read_config(self, notes: list[str]) -> None:
        if self._config:
            return
        try:
            self._config = read.config(self._folder / "config.yaml")
        except RunError as error:
            notes.append(str(error))


def state_text(folder: Path, status: dict[str, Any] | None, held: Holder) -> str:
    """Return what status.json says, and who holds the folder, in words."""
    if not folder.is_dir():
        return "there is no such folder yet"
    holds = _who_holds(held)
    if status is None:
        return f"no run has said anything here yet; {holds}"
    said, reason = str(status["status"]), status.get("reason")
    if said == RUNNING and held.holds is False:
        return f"killed: it was running, but {NOBODY}"
    return f"{said}{f': {reason}' if reason else ''}; {holds}"


def _who_holds(held: Holder) -> str:
    if held.holds is False:
        return NOBODY
    who = "a process" if held.process is None else str(held.process)
    return f"{who} holds this folder" if held.holds else f"whether {who} holds it is not to be seen"
