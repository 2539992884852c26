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

from bellman.records import REQUESTS, read_json_lines
from tests.experiments.conftest import SMALL

ROOT = Path(__file__).parents[2]


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "run.py"), *arguments]


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )


def wait_for_records(process: subprocess.Popen, lines: Path) -> None:
    """Wait until a run has recorded more than a hundred requests."""
    deadline = time.monotonic() + 300
    while not (lines.exists() and lines.stat().st_size > 100_000):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_help_explains_the_groups(tmp_path):
    result = run("--help", folder=tmp_path)
    assert result.returncode == 0
    for group in ("experiment", "controller", "arrivals", "engine", "adaptation", "corpus"):
        assert f"  {group} " in result.stdout
    assert "summarize_congested" in result.stdout


def test_a_mistake_is_one_line_on_standard_error_and_nothing_runs(tmp_path):
    for override, message in [
        ("controller.q_lw=20", "controller.q_lw=20: unknown key of controller, known are q_low"),
        ("repeats=0", "repeats=0: must be 1 or more"),
        ("controller=pid_", "Could not find 'controller/pid_' Available options"),
    ]:
        result = run(override, folder=tmp_path)
        assert result.returncode == 2
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
    assert not (tmp_path / "outputs").exists()


def test_a_sweep_with_one_wrong_value_does_not_start(tmp_path):
    result = run("-m", "arrivals.overload=1.1,-1", *SMALL, folder=tmp_path)
    assert result.returncode == 2
    assert "arrivals.overload=-1.0: must be greater than 0" in result.stderr
    assert not list(tmp_path.rglob("requests.jsonl"))


def test_a_sweep_leaves_its_folders_and_one_combined_table(tmp_path):
    result = run("-m", "arrivals.overload=1.1,1.2,1.5", "repeats=1", *SMALL[1:], folder=tmp_path)
    assert result.returncode == 0, result.stderr
    folders = list((tmp_path / "outputs" / "summarize_congested").iterdir())
    assert len(folders) == 3
    (table,) = (tmp_path / "outputs").rglob("sweep.csv")
    rows = pd.read_csv(table)
    assert sorted(rows["arrivals.overload"]) == [1.1, 1.2, 1.5]


def test_a_killed_run_keeps_what_finished_and_runs_again_to_its_end(tmp_path):
    arguments = [*SMALL[1:], "repeats=4", "folder=run"]
    process = subprocess.Popen(
        command(*arguments), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    lines = tmp_path / "run" / "requests.jsonl"
    wait_for_records(process, lines)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    table = read_json_lines(lines, REQUESTS)
    assert table.num_rows > 100
    assert set(table["status"].to_pylist()) == {"ok"}
    assert json.loads((tmp_path / "run" / "status.json").read_text())["status"] == "running"

    again = run(*arguments, folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads((tmp_path / "run" / "status.json").read_text())["status"] == "done"
    kept = tmp_path / "run.unfinished-1" / "requests.jsonl"
    assert read_json_lines(kept, REQUESTS).num_rows == table.num_rows

    shown = run(*arguments, folder=tmp_path)
    assert shown.returncode == 0
    assert "finished; shown again" in shown.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_ends_at_once_and_says_so(tmp_path, number):
    process = subprocess.Popen(
        command(*SMALL[1:], "repeats=4", "folder=run"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_records(process, tmp_path / "run" / "requests.jsonl")
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors.endswith("interrupted: what was finished is recorded\n")
    assert json.loads((tmp_path / "run" / "status.json").read_text())["status"] == "interrupted"
    assert pd.read_parquet(tmp_path / "run" / "requests.parquet").shape[0] > 100
    assert (tmp_path / "run" / "summary.json").exists()
