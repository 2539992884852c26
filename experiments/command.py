"""`python run.py`: one configuration or many, every failure in a line, and the exit status."""

import errno
import os
import sys
import traceback
from pathlib import Path

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from bellman import interruption
from bellman.engines.base import EngineDied
from bellman.errors import ConfigError, RunError
from bellman.redact import conceal, learn
from experiments.execute import execute
from experiments.messages import CONF, one_line
from experiments.sweep import finish_sweep, note_end, place_of_notes

FAILED = 1
USER_ERROR = 2
INTERRUPTED = 130
"""By whatever signal."""
EXPECTED = (ConfigError, HydraException, OmegaConfBaseException, OSError, RunError, EngineDied)
"""What a user or a machine can cause: a line says all of it."""

exit_codes = [0]
"""Of the jobs of this process; those of others leave word in the sweep's notes."""


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def job(config: DictConfig) -> None:
    """Run one configuration, in the process and on the machine where Hydra's launcher puts it."""
    run_job(config)


def run_job(config: DictConfig) -> None:
    """Run one configuration; a failure is one line on standard error, and an exit status.

    No exception but KeyboardInterrupt comes out: launchers would each do another thing with it.
    """
    learn(OmegaConf.to_container(config))
    folders: list[Path] = []
    error: str | None = None
    exit_code = 0
    try:
        with interruption.handled(), interruption.unbroken():
            execute(config, Console(), folders.append)
    except KeyboardInterrupt:
        error, exit_code = "interrupted", INTERRUPTED
        raise
    except BaseException as failure:  # of a library that exits, too: the other jobs go on
        error, exit_code = conceal(describe(failure)), exit_status(failure)
        if not isinstance(failure, EXPECTED):
            error += f"; where: {keep_traceback(failure, folders)}"
        print(f"error: {error}", file=sys.stderr)
    finally:
        exit_codes.append(exit_code)
        note_end(folders[0] if folders else None, error, exit_code)


def describe(failure: BaseException) -> str:
    """Return a failure in one line; a server's last lines may follow."""
    if isinstance(failure, ConfigError | HydraException | OmegaConfBaseException):
        return one_line(failure, sys.argv[1:])
    if isinstance(failure, OSError) and failure.errno == errno.ENOSPC:
        return "the disk is full: free some space; what was recorded until then is kept"
    if isinstance(failure, EXPECTED):
        return str(failure) or type(failure).__name__
    first = next(iter(str(failure).splitlines()), "")
    return f"{type(failure).__name__}: {first}".rstrip(": ")


def exit_status(failure: BaseException) -> int:
    """Return the exit status that a failure makes."""
    mistakes = (ConfigError, HydraException, OmegaConfBaseException)
    return USER_ERROR if isinstance(failure, mistakes) else FAILED


def keep_traceback(failure: BaseException, folders: list[Path]) -> str:
    """Write the traceback of an unexpected failure beside the run, and return where; "above" if
    there is no place, and it went to standard error.
    """
    text = conceal("".join(traceback.format_exception(failure)))
    in_sweep = place_of_notes()
    try:
        if folders:
            file = folders[0] / "traceback.txt"
        elif in_sweep is not None:
            file = in_sweep(".traceback.txt")
        else:
            raise FileNotFoundError
        file.write_text(text, encoding="utf-8")
    except OSError:
        sys.stderr.write(text)
        return "above"
    return str(file)


def main() -> int:
    """Run from the command line and return the exit status."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # let exceptions through to here
    status = 0
    try:
        with interruption.interruptible():
            job()
    except (HydraException, OmegaConfBaseException, ValueError) as mistake:
        print(f"error: {conceal(one_line(mistake, sys.argv[1:]))}", file=sys.stderr)
        status = USER_ERROR
    except KeyboardInterrupt as interrupt:
        print(f"interrupted: {str(interrupt) or 'what was finished is recorded'}", file=sys.stderr)
        status = INTERRUPTED
    except Exception as failure:  # a launcher's: the jobs' own do not come here
        sys.stderr.write(conceal("".join(traceback.format_exception(failure))))
        status = FAILED
    try:
        status = max(status, finish_sweep())
    except OSError as failure:
        print(f"error: no combined table: {failure}", file=sys.stderr)
        status = max(status, FAILED)
    return max(status, *exit_codes)
