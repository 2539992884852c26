"""`python run.py executor=...`, interrupted or killed: nothing outlives it, nothing is lost."""

import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.executors.conftest import SMALL, assert_same_files, run, wait_until_ended

ROOT = Path(__file__).parents[2]


def start(executor: str, folder: Path) -> subprocess.Popen[str]:
    """Start a run as a terminal does: the leader of a group of processes."""
    if executor == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    arguments = [*SMALL, f"executor={executor}", f"folder={folder}"]
    return subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_episodes(process: subprocess.Popen[str], folder: Path, count: int) -> None:
    """Wait until so many cells are done, or the run has ended."""
    deadline_s = time.monotonic() + 600
    while len(list(folder.glob("episodes/*/episode.json"))) < count and process.poll() is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def everything(process: subprocess.Popen[str]) -> list[psutil.Process]:
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("executor", "by"),
    [
        ("processes", "terminal"),
        *(
            pytest.param(executor, by, marks=pytest.mark.slow)
            for executor, by in [("processes", "SIGTERM"), ("ray", "terminal"), ("ray", "SIGTERM")]
        ),
    ],
)
def test_an_interrupted_run_ends_its_processes_and_says_so_in_a_line(tmp_path, executor, by):
    process = start(executor, tmp_path / "run")
    wait_for_episodes(process, tmp_path / "run", 1)
    started = everything(process)
    if by == "terminal":  # Ctrl-C reaches every process of the group
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.terminate()
    _, errors = process.communicate(timeout=600)
    assert errors.startswith("interrupted: ") and errors.count("\n") == 1
    assert process.returncode == 130
    wait_until_ended(started)
    assert len(list((tmp_path / "run").glob("episodes/*/episode.json"))) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "ray"])
def test_a_run_killed_three_times_and_started_again_has_the_files_of_an_unbroken_one(
    serial, tmp_path, executor
):
    folder = tmp_path / "run"
    moments = random.Random(7)
    for done in range(3):
        process = start(executor, folder)
        wait_for_episodes(process, folder, done)
        time.sleep(moments.uniform(0.0, 1.5))
        started = everything(process)
        process.kill()
        process.communicate(timeout=600)
        wait_until_ended(started)
    assert_same_files(run(folder, f"executor={executor}"), serial)
