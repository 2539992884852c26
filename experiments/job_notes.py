"""What the jobs of one sweep say of themselves, from whatever process and machine they run on.

Every sweep has a folder of notes of its own, so that two sweeps never mix, wherever they write.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from bellman.live_process import ProcessIdentity, is_alive, this_process
from bellman.records import write_json

FAILED = 1


@dataclass(frozen=True)
class Job:
    """One job of a sweep."""

    overrides: list[str]
    """What was given for it."""
    process: ProcessIdentity | None = None
    """Where it runs or ran; None where it never began."""
    folder: str | None = None
    """Its run folder; None where it failed before it had one."""
    error: str | None = None
    exit_code: int | None = None
    """None until it has ended."""


@dataclass(frozen=True)
class JobNotes:
    """The notes of one sweep; goes with the sweep's jobs into their processes."""

    folder: Path
    expected: list[list[str]]
    """Overrides of each job, in order."""

    def write(self, number: int, job: Job) -> None:
        """Leave word of a job; a later word replaces an earlier one."""
        write_json(asdict(job), self.folder / f"{number}.json")

    def read(self, number: int) -> Job:
        """Return what is known of a job."""
        try:
            note = json.loads((self.folder / f"{number}.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Job(self.expected[number])
        process = None if note["process"] is None else ProcessIdentity(**note["process"])
        return Job(**note | {"process": process})

    def jobs(self) -> list[Job]:
        """Return exactly the jobs of this sweep, in order; one that left no word has failed."""
        return [self._ended(self.read(number)) for number in range(len(self.expected))]

    def running_elsewhere(self) -> list[ProcessIdentity]:
        """Return the processes of this machine, other than this one, that work on a job."""
        jobs = [self.read(number) for number in range(len(self.expected))]
        processes = {job.process for job in jobs if job.exit_code is None and job.process}
        return [each for each in processes if each != this_process() and is_alive(each)]

    def _ended(self, job: Job) -> Job:
        if job.exit_code is not None:
            return job
        error = "it did not begin" if job.process is None else f"{job.process} ended without a word"
        return Job(job.overrides, job.process, job.folder, error, FAILED)


def new_notes(sweep_folder: Path, expected: Sequence[Sequence[str]]) -> JobNotes:
    """Make the notes' folder of a sweep that begins; its name is this sweep's alone."""
    name = f"{datetime.now():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"
    folder = sweep_folder.absolute() / name
    folder.mkdir(parents=True)
    return JobNotes(folder, [list(overrides) for overrides in expected])
