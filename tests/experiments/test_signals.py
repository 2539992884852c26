"""Signals at any moment of a real run: none is lost, and each ends the run in order."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bellman.records import REQUESTS, STATUSES, TIMELINE, read_json_lines
from bellman.run_folder import claim_folder
from tests.experiments.conftest import SMALL

ROOT = Path(__file__).parents[2]
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RUN_BYTES = 1_000_000
"""About what requests.jsonl of such a run holds at its end."""


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), *SMALL, "folder=run"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def recorded_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("episodes/*/requests.jsonl"))


def wait_for_bytes(process: subprocess.Popen[str], folder: Path, size_bytes: int) -> None:
    """Wait until so much is recorded, or the run has ended."""
    deadline_s = time.monotonic() + 600
    while process.poll() is None and time.monotonic() < deadline_s:
        if recorded_bytes(folder) >= size_bytes:
            return
        time.sleep(0.005)


def check_that_it_ended_in_order(process: subprocess.Popen[str], folder: Path) -> None:
    _, errors = process.communicate(timeout=600)
    status = json.loads((folder / "status.json").read_text())
    for episode in folder.glob("episodes/*/begun.json"):
        table = read_json_lines(episode.parent / "requests.jsonl", REQUESTS)
        assert set(table["status"].to_pylist()) <= set(STATUSES)
        ids = table["request_id"].to_pylist()
        assert len(ids) == len(set(ids))
        read_json_lines(episode.parent / "timeline.jsonl", TIMELINE)
    if process.returncode == 0:  # it came too late
        assert status["status"] == "done"
        assert (folder / "requests.parquet").exists()
        return
    assert process.returncode == 130, errors
    assert errors.startswith("interrupted: ") and errors.count("\n") == 1
    assert status["status"] in {"interrupted", "recorded"}
    if status["status"] == "recorded":
        assert "python -m analysis.present" in errors
    claim_folder(folder, status["run_id"]).release()  # nothing holds it


def at_random_moments(tmp_path: Path, count: int, seed: int, at_once: int) -> int:
    """Send one or two signals at seeded moments to so many runs; return how many it ended."""
    moments = random.Random(seed)
    interrupted = 0
    for first in range(0, count, at_once):
        runs = []
        for number in range(first, min(first + at_once, count)):
            place = tmp_path / str(number)
            place.mkdir()
            runs.append((start(place), place / "run"))
        for process, folder in runs:
            wait_for_bytes(process, folder, moments.randrange(RUN_BYTES))
            time.sleep(moments.random() * 0.3)
            for _ in range(moments.choice([1, 1, 2])):
                process.send_signal(moments.choice(NUMBERS))
                time.sleep(moments.random() * 0.2)
        for process, folder in runs:
            check_that_it_ended_in_order(process, folder)
            interrupted += process.returncode == 130
    return interrupted


@pytest.mark.slow
def test_two_signals_at_random_moments_each_end_the_run_in_order(tmp_path):
    assert at_random_moments(tmp_path, 2, seed=1, at_once=2) >= 1


@pytest.mark.slow
def test_thirty_signals_at_random_moments_each_end_the_run_in_order(tmp_path):
    assert at_random_moments(tmp_path, 30, seed=2, at_once=2) >= 15
