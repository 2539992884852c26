"""Small whole runs in virtual time, and one of them made by the serial executor to compare with."""

import os
import re
import time
from pathlib import Path

import psutil
import pytest
from hydra import compose, initialize_config_dir
from rich.console import Console

from experiments.execute import execute
from experiments.executors.base import Place
from experiments.parts import Parts
from tests.experiments.conftest import CONF, SMALL

OF_THIS_RUN = {"provenance.json", "status.json", "config.yaml", "made.json"}
"""Files that tell when and by which hands a run was made."""


def read_config(*overrides: str):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", overrides=[*SMALL, *overrides])


def run(folder: Path, *overrides: str) -> Path:
    config = read_config(f"folder={folder}", *overrides)
    return execute(config, Console(quiet=True), draw=False)


def files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file of a run that does not tell when it was made."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in OF_THIS_RUN
    }


def assert_same_files(folder: Path, other: Path) -> None:
    ours, others = files(folder), files(other)
    assert ours.keys() == others.keys()
    assert [name for name in ours if ours[name] != others[name]] == []


def place(folder: Path, console: Console | None = None) -> Place:
    folder.mkdir(exist_ok=True)
    return Place(folder, console or Console(quiet=True), "simulated", Parts())


def workers() -> list[psutil.Process]:
    """Return what this process started, without what ends with it: joblib's and Python's own."""
    found = [one for one in psutil.Process(os.getpid()).children(recursive=True) if runs(one)]
    return [one for one in found if not re.search("resource_tracker|forkserver", command(one))]


def command(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


def wait_until_ended(processes: list[psutil.Process]) -> None:
    """Fail if one of them outlives what started it; a zombie has ended."""
    deadline_s = time.monotonic() + 600
    while left := [one for one in processes if runs(one)]:
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="session")
def serial(tmp_path_factory):
    return run(tmp_path_factory.mktemp("serial") / "run")
