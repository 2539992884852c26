"""Run an experiment: `python run.py experiment=summarize_congested`; see `--help`."""

import errno
import os
import signal
import sys

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from bellman.engines.base import EngineDied
from bellman.errors import ConfigError, RunError
from bellman.redact import conceal, learn
from experiments.execute import execute
from experiments.messages import one_line
from experiments.sweep import note_job

FAILED = 1
USER_ERROR = 2
INTERRUPTED = 130

exit_codes = [0]
"""Of the jobs of this process: Hydra itself knows only exceptions, and prints them."""


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def job(config: DictConfig) -> None:
    """Run one configuration; a failure is one line on standard error."""
    folder = error = None
    learn(OmegaConf.to_container(config))
    try:
        folder = execute(config, Console())
    except (ConfigError, HydraException, OmegaConfBaseException) as mistake:
        error = one_line(mistake, sys.argv[1:])
        exit_codes.append(USER_ERROR)
    except OSError as failure:
        error = str(failure)
        if failure.errno == errno.ENOSPC:
            error = "the disk is full: free some space; what was recorded until then is kept"
        exit_codes.append(FAILED)
    except (RunError, EngineDied) as failure:
        error = str(failure)
        exit_codes.append(FAILED)
    if error is not None:
        error = conceal(error)
        print(f"error: {error}", file=sys.stderr)
    hydra_config = HydraConfig.get()
    if hydra_config.mode == RunMode.MULTIRUN:
        note_job(hydra_config, folder, error)


def main() -> int:
    """Run from the command line and return the exit status."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # let exceptions through to here
    # A shell starts background jobs with SIGINT ignored; SIGTERM comes in by the same door.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup lets a closed terminal pass
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        job()
    except (HydraException, OmegaConfBaseException, ValueError) as mistake:
        print(f"error: {conceal(one_line(mistake, sys.argv[1:]))}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print("interrupted: what was finished is recorded", file=sys.stderr)
        return INTERRUPTED
    return max(exit_codes)


if __name__ == "__main__":
    sys.exit(main())
