"""Multirun: every configuration is checked before the first one runs; one combined table after."""

import json
import sys
from pathlib import Path
from typing import Any

from hydra import compose
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from analysis.sweep import write_sweep
from bellman.errors import ConfigError, RunError
from bellman.records import write_json
from bellman.redact import conceal
from experiments.execute import prepare
from experiments.messages import one_line

JOB = "job.json"


def note_job(config: DictConfig, folder: Path | None, error: str | None) -> None:
    """Leave word of a multirun's job for the table at the end; works from any launcher's process.

    `config` is Hydra's own, with the job's number and overrides.
    """
    place = Path(config.sweep.dir) / str(config.job.num)
    place.mkdir(parents=True, exist_ok=True)
    write_json(
        {
            "folder": None if folder is None else str(folder.absolute()),
            "error": error,
            "overrides": list(config.overrides.task),
        },
        place / JOB,
    )


def noted_jobs(sweep_folder: Path) -> list[dict[str, Any]]:
    """Return what the jobs noted, in their order."""
    places = sorted(sweep_folder.glob(f"*/{JOB}"), key=lambda path: int(path.parent.name))
    return [json.loads(place.read_text()) for place in places]


class SweepCallback(Callback):
    """Hydra's hooks around a multirun."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Stop the whole multirun before it starts when one of its configurations is wrong.

        Hydra turns exceptions of callbacks into warnings: only SystemExit gets through.
        """
        overrides = list(config.hydra.overrides.task)
        try:
            for batch in BasicSweeper.split_arguments(
                OverridesParser.create().parse_overrides(overrides), None
            ):
                for job in batch:
                    prepare(compose(config_name=config.hydra.job.config_name, overrides=job))
        except (ConfigError, RunError, HydraException, OmegaConfBaseException) as error:
            print(f"error: {conceal(one_line(error, overrides))}", file=sys.stderr)
            raise SystemExit(2) from None

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Write and print the combined table of what finished."""
        sweep_folder = Path(config.hydra.sweep.dir)
        jobs = noted_jobs(sweep_folder)
        finished = [job for job in jobs if job["folder"] is not None]
        if finished:
            write_sweep(sweep_folder, finished, Console())
        for job in jobs:
            if job["error"] is not None:
                print(f"failed: {' '.join(job['overrides'])}: {job['error']}", file=sys.stderr)
