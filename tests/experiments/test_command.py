"""`python run.py` as a user meets it: real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.experiments.conftest import SMALL, TINY

ROOT = Path(__file__).parents[2]


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "run.py"), *arguments]


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )


def done_episodes(folder: Path) -> list[Path]:
    return sorted(folder.glob("episodes/*/episode.json"))


def wait_for_episodes(process: subprocess.Popen, folder: Path, count: int) -> None:
    """Wait until a run has so many episodes done (or capacities measured)."""
    deadline = time.monotonic() + 300
    while len(done_episodes(folder)) < count:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_help_explains_the_groups(tmp_path):
    result = run("--help", folder=tmp_path)
    assert result.returncode == 0
    for group in ("experiment", "arm", "study", "executor", "arrivals", "engine", "corpus"):
        assert f"  {group} " in result.stdout
    assert "summarize_congested" in result.stdout


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("arms.bellman.controller.q_lw=20", "unknown key of arms.bellman.controller, known are"),
        pytest.param("repeats=0", "repeats=0: must be 1 or more", marks=pytest.mark.slow),
        pytest.param(
            "arm=[none,pid_]",
            "arm=[none,pid_]: pid_ must be one of aimd, bellman, ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_mistake_is_one_line_on_standard_error_and_nothing_runs(tmp_path, override, message):
    result = run(override, folder=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "outputs").exists()


@pytest.mark.slow
def test_a_sweep_with_one_wrong_value_does_not_start(tmp_path):
    result = run("-m", "arrivals.overload=1.1,-1", *SMALL, folder=tmp_path)
    assert result.returncode == 2
    assert "arrivals.overload=-1: must be greater than 0" in result.stderr
    assert not list(tmp_path.rglob("requests.jsonl"))


@pytest.mark.slow
def test_a_sweep_leaves_its_folders_and_one_combined_table(tmp_path):
    result = run("-m", "arrivals.overload=1.1,1.5", *TINY, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    folders = list((tmp_path / "outputs" / "summarize_congested").iterdir())
    assert len(folders) == 2
    (table,) = (tmp_path / "outputs").rglob("sweep.csv")
    rows = pd.read_csv(table)
    assert sorted(rows["arrivals.overload"]) == [1.1, 1.5]


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path):
    arguments = [*SMALL[1:], "repeats=4", "folder=run"]
    process = subprocess.Popen(
        command(*arguments), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    folder = tmp_path / "run"
    wait_for_episodes(process, folder, 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in done_episodes(folder)}
    assert 3 <= len(before) < 9
    assert json.loads((folder / "status.json").read_text())["status"] == "running"

    again = run(*arguments, folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads((folder / "status.json").read_text())["status"] == "done"
    assert len(done_episodes(folder)) == 9
    assert {path: path.stat().st_mtime_ns for path in before} == before

    shown = run(*arguments, folder=tmp_path)
    assert shown.returncode == 0
    assert "finished; shown again" in " ".join(shown.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)]
)
def test_an_interrupted_run_ends_at_once_and_says_so(tmp_path, number):
    process = subprocess.Popen(
        command(*TINY[1:], "repeats=100", "folder=run"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    folder = tmp_path / "run"
    wait_for_episodes(process, folder, 2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors.endswith("interrupted: what was finished is recorded\n")
    assert json.loads((folder / "status.json").read_text())["status"] == "interrupted"
    assert pd.read_parquet(folder / "requests.parquet").shape[0] > 10
    assert (folder / "summary.json").exists()
