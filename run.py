"""Run an experiment: `python run.py experiment=summarize_congested`; see `--help`."""

import os
import signal
import sys

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from bellman.errors import ConfigError, RunError
from experiments.execute import execute
from experiments.messages import one_line
from experiments.sweep import note_job

USER_ERROR = 2
FAILED = 1
INTERRUPTED = 130


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def job(config: DictConfig) -> str:
    """Run one configuration; returns its folder."""
    folder = execute(config, Console())
    hydra_config = HydraConfig.get()
    if hydra_config.mode == RunMode.MULTIRUN:
        note_job(hydra_config, folder)
    return str(folder)


def main() -> int:
    """Run from the command line; a user's mistake is one line on standard error."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # let exceptions through to here
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        job()
    except (ConfigError, HydraException, OmegaConfBaseException) as error:
        print(f"error: {one_line(error, sys.argv[1:])}", file=sys.stderr)
        return USER_ERROR
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted: what was finished is recorded", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
