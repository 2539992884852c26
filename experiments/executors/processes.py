"""Runs several cells at once on this machine, each in a process of its own."""

import ctypes
import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor

from bellman.schema import Count, schema
from experiments.executors.base import OnOutcome, Place
from experiments.executors.progress import CellsProgress
from experiments.executors.worker import ONE_THREAD, run_cell
from experiments.perform import Outcome, Planned, failed

Ran = tuple[Outcome, list[str]]
"""What `run_cell` returns."""
PR_SET_PDEATHSIG = 1
OF_THE_TERMINAL = {signal.SIGINT, signal.SIGHUP}
"""Signals that a terminal sends to every process: the parent's to answer."""
LOST = (
    "the process that ran it was killed, twice (out of memory?): "
    "fewer executor.workers need less memory"
)


@schema
class Processes:
    """Worker processes that live as long as the study."""

    workers: Count | None = None
    """None: as many as there are cores."""

    @property
    def parallel(self) -> bool:
        """Whether it runs several cells at once."""
        return True

    @contextmanager
    def at(self, place: Place) -> Iterator["ProcessesHands"]:
        """Begin to work at a place; a process is started when there is a cell for it."""
        with ExitStack() as ends, CellsProgress(place.console, place.source) as progress:
            workers = [Worker(place.folder) for _ in range(self.workers or cpu_count())]
            for worker in workers:
                ends.callback(worker.end)
            yield ProcessesHands(place.folder, workers, progress)


class Worker:
    """One process that runs a cell at a time.

    A pool of one, so that it is known whose cell was lost when a process dies, and so that the
    others go on.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pool: ProcessPoolExecutor | None = None

    def begin(self, plan: Planned) -> "Future[Ran]":
        """Hand a cell over; starts the process where there is none."""
        if self._pool is not None:
            try:
                return cast("Future[Ran]", self._pool.submit(run_cell, plan, self._folder))
            except BrokenExecutor:  # it was killed while it had nothing to do
                self.end()
        self._pool = ProcessPoolExecutor(
            1, env=ONE_THREAD, initializer=end_with_parent, initargs=(os.getpid(),)
        )
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, OF_THE_TERMINAL)
        try:  # the process inherits that these are blocked
            return cast("Future[Ran]", self._pool.submit(run_cell, plan, self._folder))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def end(self) -> None:
        """End the process, whatever it does, and wait until it is gone."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)
            self._pool = None


def end_with_parent(parent_id: int) -> None:
    """Let the kernel kill this process when its parent ends, however that ends (Linux)."""
    signal.pthread_sigmask(signal.SIG_BLOCK, OF_THE_TERMINAL)  # loky may have unblocked SIGINT
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_id:  # it ended before
        os._exit(1)


@dataclass(frozen=True)
class ProcessesHands:
    """See `experiments.executors.base.Hands`."""

    folder: Path
    workers: list[Worker]
    progress: CellsProgress
    lost: set[str] = field(default_factory=set)
    """Keys of the cells whose process died once."""

    def run(self, plans: Sequence[Planned], on_outcome: OnOutcome) -> None:
        """Run the cells in any order; what a cell records depends on nothing but the cell."""
        self.progress.expect(len(plans))
        waiting = deque(plans)
        free = self.workers[::-1]  # a stack: a process that has loaded everything goes first
        running: dict[Future[Ran], tuple[Worker, Planned]] = {}
        while waiting or running:
            while waiting and free:
                worker, plan = free.pop(), waiting.popleft()
                running[worker.begin(plan)] = (worker, plan)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                worker, plan = running.pop(future)
                try:
                    outcome, said = future.result()
                except BrokenExecutor:
                    worker.end()
                    if plan.key not in self.lost:
                        self.lost.add(plan.key)
                        waiting.appendleft(plan)
                        free.append(worker)
                        continue
                    outcome, said = failed(plan, plan.folder(self.folder), LOST), []
                free.append(worker)
                self.progress.ended(outcome, said)
                on_outcome(outcome)
