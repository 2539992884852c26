"""Runs cells one after the other, in this process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bellman.schema import schema
from experiments.executors.base import OnOutcome, Place
from experiments.perform import Planned, perform
from experiments.progress import RunProgress


@schema
class Serial:
    """One process, one engine, one cell at a time."""

    parallel: bool = False

    @contextmanager
    def at(self, place: Place) -> Iterator["SerialHands"]:
        """Begin to work at a place."""
        with place.parts, RunProgress(place.console, place.source) as progress:
            yield SerialHands(place, progress)


@dataclass(frozen=True)
class SerialHands:
    """See `experiments.executors.base.Hands`."""

    place: Place
    progress: RunProgress

    def run(self, plans: Sequence[Planned], on_outcome: OnOutcome) -> None:
        """Run each cell, showing its samples."""
        for plan in plans:
            self.progress.source = plan.cell.source
            on_outcome(perform(plan, self.place.folder, self.place.parts, self.progress))
