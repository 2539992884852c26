"""A process that runs cells for another one: its own parts, one thread, nobody looking on."""

from functools import cache
from pathlib import Path

from bellman.records import TimelineRow
from experiments.parts import Parts
from experiments.perform import Outcome, Planned, perform

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of such a process: there are as many of them as cores. pyarrow reads the first."""


class Lines:
    """A `Watch` that keeps what a user should read, for the process that has a console."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self, description: str, duration_s: float | None) -> None:
        """Show nothing."""

    def update(self, row: TimelineRow) -> None:
        """Show nothing."""

    def say(self, line: str) -> None:
        """Keep the line."""
        self.said.append(line)

    def finish(self, end_s: float | None) -> None:
        """Show nothing."""


@cache
def own_parts() -> Parts:
    """Return this process's parts: corpus, bank and engine are loaded once in its life."""
    return Parts()


def run_cell(plan: Planned, run_folder: Path) -> tuple[Outcome, list[str]]:
    """Run a cell into a run folder; return also what it said. Raises as `perform` does."""
    lines = Lines()
    return perform(plan, run_folder, own_parts(), lines), lines.said
