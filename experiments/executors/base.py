"""The interface of the config group `executor`: by whose hands cells are run."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import Console

from bellman.source import Source
from experiments.parts import Parts
from experiments.perform import Outcome, Planned

OnOutcome = Callable[[Outcome], None]


@dataclass(frozen=True)
class Place:
    """Where a run writes, and where it says how it goes on."""

    folder: Path
    console: Console
    source: Source
    parts: Parts
    """Of this process: the engine in it is the one that provenance.json describes."""


class Hands(Protocol):
    """An executor at work."""

    def run(self, plans: Sequence[Planned], on_outcome: OnOutcome) -> None:
        """Run cells that do not need each other, and hand over each outcome as it comes.

        A cell that fails has an outcome that says so; the others go on. Raises for what concerns
        them all (an interruption, a full disk), after every cell that ran has been ended.
        """


class Executor(Protocol):
    """A configured executor."""

    @property
    def parallel(self) -> bool:
        """Whether it runs several cells at once, which a real engine cannot take."""

    def at(self, place: Place) -> AbstractContextManager[Hands]:
        """Begin to work at a place; ends every process it started on the way out."""
