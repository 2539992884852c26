"""Multirun: every configuration is checked before the first one runs; one combined table after."""

import itertools
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from analysis.sweep import write_sweep
from bellman import interruption
from bellman.errors import ConfigError, RunError
from bellman.live_process import this_process
from bellman.records import write_text
from bellman.redact import conceal, learn, redact
from experiments.execute import prepare
from experiments.job_notes import Job, JobNotes, new_notes
from experiments.messages import one_line

JOBS_END_S = 120.0
"""Jobs in other processes get so long to end in order when a signal ends the sweep."""
POLL_S = 0.1


class _Current:
    """What this process is at: the sweep that it started, and the job that it works on."""

    def __init__(self) -> None:
        self.sweep: JobNotes | None = None
        self.job: tuple[JobNotes, int, Job] | None = None


_current = _Current()


class SweepCallback(Callback):
    """Hydra's hooks; launchers carry this object, and so the sweep's notes, to every job."""

    def __init__(self) -> None:
        self.notes: JobNotes | None = None

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Stop the whole multirun before it starts when one of its configurations is wrong.

        Hydra turns exceptions of callbacks into warnings: only SystemExit gets through.
        """
        overrides = list(config.hydra.overrides.task)
        try:
            jobs = job_overrides(config)
            for job in jobs:
                prepare(compose(config_name=config.hydra.job.config_name, overrides=job))
            self.notes = new_notes(Path(config.hydra.sweep.dir), jobs)
            write_configuration(config, self.notes.folder)
        except (ConfigError, RunError, HydraException, OmegaConfBaseException, OSError) as error:
            print(f"error: {conceal(one_line(error, overrides))}", file=sys.stderr)
            raise SystemExit(2) from None
        _current.sweep = self.notes
        interruption.pass_on(end_jobs_elsewhere)

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Leave word that a job begins, in the process that works on it."""
        if self.notes is not None:
            job = Job(list(config.hydra.overrides.task), this_process())
            _current.job = (self.notes, int(config.hydra.job.num), job)
            self.notes.write(int(config.hydra.job.num), job)


class Concealing(logging.Filter):
    """Keeps secrets out of what Hydra's launchers say of their jobs."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through, without secrets."""
        record.msg, record.args = conceal(record.getMessage()), ()
        return True


def write_configuration(config: DictConfig, folder: Path) -> None:
    """Write a sweep's configuration without its secrets, and keep Hydra from writing it with them.

    Hydra is about to write it and the command's overrides as `multirun.yaml`, and cannot be told
    not to: what it writes there goes nowhere.
    """
    values = OmegaConf.to_container(config)
    learn(values)
    write_text(OmegaConf.to_yaml(OmegaConf.create(redact(values))), folder / "sweep.yaml")
    nowhere = folder / "nowhere"
    nowhere.symlink_to(os.devnull)
    nowhere.replace(Path(config.hydra.sweep.dir) / "multirun.yaml")


def job_overrides(config: DictConfig) -> list[list[str]]:
    """Return what Hydra's own sweeper will give to each job, in order."""
    parameters = OmegaConf.to_container(config.hydra.sweeper.params or OmegaConf.create({}))
    assert isinstance(parameters, dict)
    given = [f"{name!s}={value}" for name, value in parameters.items()]
    given += list(config.hydra.overrides.task)
    choices = []
    for override in OverridesParser.create().parse_overrides(given):
        key = override.get_key_element()
        if override.is_sweep_override():
            choices.append([f"{key}={value}" for value in override.sweep_string_iterator()])
        else:
            choices.append([f"{key}={override.get_value_element_as_str()}"])
    return [list(job) for job in itertools.product(*choices)]


def note_end(folder: Path | None, error: str | None, exit_code: int) -> None:
    """Leave word of how the job ended that this process worked on; nothing outside a sweep."""
    if _current.job is not None:
        notes, number, job = _current.job
        place = None if folder is None else str(folder.absolute())
        notes.write(number, replace(job, folder=place, error=error, exit_code=exit_code))
        _current.job = None


def place_of_notes() -> Callable[[str], Path] | None:
    """Return how to name a file beside the current job's note; None outside a sweep."""
    if _current.job is None:
        return None
    notes, number, _ = _current.job
    return lambda ending: notes.folder / f"{number}{ending}"


def finish_sweep() -> int:
    """Write and print the table of the sweep that this process started; return the exit status.

    It is the largest of the jobs'; 0 where there was no sweep.
    """
    notes, _current.sweep = _current.sweep, None
    if notes is None:
        return 0
    jobs = notes.jobs()
    table = write_sweep(notes.folder, [asdict(job) for job in jobs], Console())
    # For whoever looks into the sweep's folder: there stands the table of the last one that ended.
    write_text(table.read_text(encoding="utf-8"), notes.folder.parent / "sweep.csv")
    for job in jobs:
        if job.error is not None:
            print(f"failed: {' '.join(job.overrides)}: {job.error}", file=sys.stderr)
    return max((job.exit_code or 0 for job in jobs), default=0)


def end_jobs_elsewhere() -> None:
    """Ask the jobs that other processes of this machine work on to end, and wait until they have.

    A launcher that is interrupted kills its workers: by then their records must be written.
    """
    notes = _current.sweep
    if notes is None:
        return
    for process in notes.running_elsewhere():
        os.kill(process.process_id, signal.SIGTERM)
    deadline_s = time.monotonic() + JOBS_END_S
    while notes.running_elsewhere() and time.monotonic() < deadline_s:
        time.sleep(POLL_S)
