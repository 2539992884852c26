"""The progress bars of a run: one for each arm and repeat, in the episode's own time."""

import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from bellman.records import TimelineRow
from bellman.source import Source

REFRESH_S = 0.1
UNWRAPPED = Column(no_wrap=True, min_width=14)


class RunProgress:
    """Shows simulated (or real) time, level, waiting requests and word budget while a run goes on.

    Drawn from the episode's own samples, at most every `REFRESH_S` of the user's time. Where the
    output is no terminal a line with the time of day says that an episode begins.
    """

    def __init__(self, console: Console, source: Source) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<14}", table_column=UNWRAPPED, markup=False),
            BarColumn(bar_width=10),
            TextColumn(
                "{task.fields[clock]} {task.fields[source]}",
                table_column=UNWRAPPED,
                markup=False,
            ),
            TextColumn("{task.fields[load]}", table_column=UNWRAPPED, markup=False),
            console=console,
            auto_refresh=False,
        )
        self.source = source
        """Of the cell that runs."""
        self._task: TaskID | None = None
        self._refreshed_s = 0.0

    def begin(self, description: str, duration_s: float | None) -> None:
        """Start the bar of a cell of `duration_s` seconds; the first one starts the display."""
        self._progress.start()
        console = self._progress.console
        if not console.is_terminal:
            clock = time.strftime("%H:%M:%S")
            length = "" if duration_s is None else f", {duration_s:.0f} s and drain"
            console.print(f"{clock} {description}{length} ({self.source})", markup=False)
        self._task = self._progress.add_task(
            description, total=duration_s, clock="", source=self.source, load=""
        )

    def update(self, row: TimelineRow) -> None:
        """Show a sample."""
        assert self._task is not None
        now_s = time.monotonic()
        if now_s - self._refreshed_s < REFRESH_S:
            return
        self._refreshed_s = now_s
        level = "n/a" if row.level is None else f"{row.level:.2f}"
        waiting = "n/a" if row.waiting is None else row.waiting
        load = f"level {level}  waiting {waiting}  {row.word_budget} words"
        clock = seconds(row.time_s)
        self._progress.update(self._task, completed=row.time_s, clock=clock, load=load)
        self._progress.refresh()

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._progress.console.print(line, markup=False)

    def finish(self, end_s: float | None) -> None:
        """End the bar at the cell's real length (with its drain)."""
        assert self._task is not None
        whole = end_s or 1.0
        self._progress.update(self._task, completed=whole, total=whole, clock=seconds(end_s))
        self._progress.refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()


def seconds(time_s: float | None) -> str:
    """Return a time of the cell's own clock; nothing for a cell that has none."""
    return "" if time_s is None else f"{time_s:>4.0f} s"
