"""The progress bar of a study whose cells run elsewhere: cells done of all."""

import time
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column

from bellman.source import Source
from experiments.perform import Outcome


class CellsProgress:
    """Shows how many cells have ended, and which one last.

    Where the output is no terminal each has a line with the time of day; a cell that failed has
    one everywhere.
    """

    def __init__(self, console: Console, source: Source) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[last]}", table_column=Column(no_wrap=True)),
            console=console,
            auto_refresh=False,
        )
        self._source = source
        self._all = 0
        self._ended = 0
        self._task = self._progress.add_task(f"cells ({source})", total=0, last="")

    def expect(self, count: int) -> None:
        """Take note that so many more cells are run."""
        self._all += count
        self._progress.start()
        self._progress.update(self._task, total=self._all)
        self._progress.refresh()

    def ended(self, outcome: Outcome, said: Sequence[str] = ()) -> None:
        """Show a cell that has ended, and what it said."""
        self._ended += 1
        label = outcome.planned.cell.label
        line = f"{time.strftime('%H:%M:%S')} {self._ended}/{self._all} {label} ({self._source})"
        if outcome.error is not None:
            line += f" failed: {outcome.error}"
        console = self._progress.console
        if outcome.error is not None or not console.is_terminal:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        for entry in said:
            console.print(entry, markup=False, soft_wrap=True)
        self._progress.update(self._task, completed=self._ended, last=label)
        self._progress.refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()
