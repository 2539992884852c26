"""Looks at one cell that is not done, as far as its kind shows anything before its end."""

import math
import time
from dataclasses import dataclass

from analysis.plan import EPISODE, PlannedCell
from analysis.watch.samples import EpisodeFiles
from analysis.watch.view import CellView, Latency, State
from bellman.errors import RunError
from bellman.load.schedule import Outline, read_outline
from bellman.run_files import SCHEDULES

SILENT_S = 10.0
"""A measured episode without a sample for longer says so."""


@dataclass(frozen=True)
class Said:
    """What an episode said when it began."""

    source: str
    schedule: Outline | None


class OpenEpisode:
    """Follows one open cell."""

    def __init__(self, cell: PlannedCell) -> None:
        self._cell = cell
        self._files = EpisodeFiles(cell.folder)
        self._said: Said | None = None
        self._last_time_s: float | None = None
        self._changed_s = time.monotonic()

    @property
    def said(self) -> Said | None:
        """What it said when it began; None before, and for cells that are no episodes."""
        if self._said is None and self._cell.kind == EPISODE:
            self._said = read_said(self._cell)
        return self._said

    def look(self, state: State) -> CellView:
        """Read what was appended since, and return what there is to see."""
        files, said = self._files, self.said
        files.look()
        return CellView(
            label=self._cell.label,
            kind=self._cell.kind,
            state=state,
            source=None if said is None else said.source,
            schedule=None if said is None else said.schedule,
            sample=files.samples[-1] if files.samples else None,
            ended=dict(files.ended),
            p50_s=_latency(files.percentile_s(50)),
            p99_s=_latency(files.percentile_s(99)),
            latencies=files.latencies,
            notes=self._notes(state),
            curves={
                "time_s": [sample.time_s for sample in files.samples],
                "level": [sample.level for sample in files.samples],
                "waiting": [sample.waiting for sample in files.samples],
                "running": [sample.running for sample in files.samples],
            },
        )

    def _notes(self, state: State) -> list[str]:
        notes = []
        if self._cell.kind != EPISODE:
            notes.append("a cell of this kind shows nothing before it is done")
        files, now_s = self._files, time.monotonic()
        last_time_s = files.samples[-1].time_s if files.samples else None
        if last_time_s != self._last_time_s:
            self._last_time_s, self._changed_s = last_time_s, now_s
        silent_s = now_s - self._changed_s
        measured = self._said is not None and self._said.source == "measured"
        if measured and state == "in progress" and silent_s > SILENT_S:
            notes.append(f"no new sample for {silent_s:.0f} s")
        if files.behind_bytes:
            notes.append(f"{files.behind_bytes / 2**20:.1f} MiB of requests are not counted yet")
        if files.unreadable_lines:
            notes.append(f"{files.unreadable_lines} lines cannot be read")
        return notes


def read_said(cell: PlannedCell) -> Said | None:
    """Read what an episode said when it began; None where it has not, or that cannot be read."""
    try:
        begun = cell.begun
        if begun is None:
            return None
        source, digest = str(begun["source"]), str(begun["schedule_hash"])
    except (RunError, KeyError, TypeError):
        return None
    try:
        schedule = read_outline(cell.folder.parent.parent / SCHEDULES / f"{digest}.parquet")
    except (OSError, ValueError, KeyError, TypeError):
        schedule = None
    return Said(source, schedule)


def _latency(value_s: float | None) -> Latency:
    return "lost" if value_s is not None and math.isinf(value_s) else value_s
