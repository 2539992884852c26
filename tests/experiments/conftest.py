"""Small whole runs of the compare experiment, in virtual time."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from rich.console import Console

from experiments.execute import execute

CONF = Path(__file__).parents[2] / "conf"
SMALL = (
    "repeats=2",
    "arrivals.warmup_s=10",
    "arrivals.calm_s=20",
    "arrivals.congested_s=60",
    "arrivals.recovery_s=30",
    "capacity.warmup_s=60",
    "capacity.duration_s=60",
    "corpus.limit_documents=12",
    "quality.random_draws=1",
)
"""A few seconds of computing, enough for a backlog."""
TINY = (
    "repeats=1",
    "arrivals.capacity_rps=4",
    "arrivals.warmup_s=5",
    "arrivals.calm_s=5",
    "arrivals.congested_s=10",
    "arrivals.recovery_s=5",
    "corpus.limit_documents=4",
    "quality.random_draws=0",
)
"""A second of computing, where any run will do."""


def read_config(*overrides: str):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def small(overrides: tuple[str, ...]) -> list[str]:
    """Return what makes a run small; other arrivals than the default's have no such phases."""
    others = any(override.startswith("arrivals=") for override in overrides)
    return [entry for entry in SMALL if not (others and entry.startswith("arrivals."))]


@pytest.fixture
def no_figures(monkeypatch):
    """Leave out what takes most of the time of making a folder's results."""
    monkeypatch.setattr("analysis.figures.draw", lambda _: None)
    monkeypatch.setattr("analysis.report.write", lambda _: None)


@pytest.fixture(scope="session")
def run_small(tmp_path_factory):
    """Return a function that runs the experiment with overrides and gives its folder, once each."""
    folders: dict[tuple[object, ...], Path] = {}

    def run(*overrides: str, draw: bool = False) -> Path:
        if (*overrides, draw) not in folders:
            outputs = tmp_path_factory.mktemp("outputs")
            config = read_config(*small(overrides), f"outputs={outputs}", *overrides)
            folders[*overrides, draw] = execute(config, Console(quiet=True), draw=draw)
        return folders[*overrides, draw]

    return run
