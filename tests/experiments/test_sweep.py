"""A sweep's table holds exactly its own jobs: real processes, with every launcher at hand."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.experiments.conftest import TINY

ROOT = Path(__file__).parents[2]


def start(place: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), "-m", *TINY, *arguments],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, pd.DataFrame, str]:
    """Return a sweep's exit status, the table that it names, and its errors."""
    output, errors = process.communicate(timeout=300)
    lines = [line for line in output.splitlines() if line.startswith("combined table: ")]
    assert len(lines) == 1, errors
    table = pd.read_csv(lines[0].removeprefix("combined table: "), dtype=str)
    return process.returncode, table, errors


def launcher(name: str) -> str:
    if importlib.util.find_spec(f"hydra_plugins.hydra_{name}_launcher") is None:
        pytest.skip(f"hydra-{name}-launcher is not installed")
    return {"joblib": "hydra/launcher=joblib", "submitit": "hydra/launcher=submitit_local"}[name]


@pytest.mark.slow
def test_two_sweeps_at_once_in_one_folder_and_one_again_do_not_mix(tmp_path):
    place = "hydra.sweep.dir=sweeps"
    first = start(tmp_path, place, "arrivals.overload=1.1,1.2")
    second = start(tmp_path, place, "seed=3,4")
    code, table, errors = finish(first)
    assert code == 0, errors
    assert list(table["arrivals.overload"]) == ["1.1", "1.2"]
    code, table, errors = finish(second)
    assert code == 0, errors
    assert list(table["seed"]) == ["3", "4"]
    # Finished jobs, shown again, belong to the sweep that asks for them; others do not.
    code, table, errors = finish(start(tmp_path, place, "seed=4,5"))
    assert code == 0, errors
    assert list(table["seed"]) == ["4", "5"]
    assert list(pd.read_csv(tmp_path / "sweeps" / "sweep.csv", dtype=str)["seed"]) == ["4", "5"]
    assert len(list(tmp_path.rglob("study.json"))) == 5


@pytest.mark.slow
def test_a_failed_job_is_in_the_table_and_makes_the_command_fail(tmp_path):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("precious")
    code, table, errors = finish(start(tmp_path, "folder=good,foreign"))
    assert code == 1
    assert list(table["folder"].fillna("")) != ["", ""]
    assert table["state"][0] == "complete"
    assert "is not empty and is no run folder" in table["state"][1]
    assert "failed: " in errors and "folder=foreign" in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["basic", *(pytest.param(name, marks=pytest.mark.slow) for name in ("joblib", "submitit"))],
)
def test_an_unexpected_failure_of_any_launchers_job_is_listed_with_its_traceback(tmp_path, name):
    given = [] if name == "basic" else [launcher(name)]
    studies = "tests.experiments.broken_study.Paired,experiments.studies.paired.Paired"
    code, table, errors = finish(start(tmp_path, *given, f"study._target_={studies}"))
    assert code == 1
    assert list(table["state"].str.startswith("failed: ZeroDivisionError")) == [True, False]
    (kept,) = tmp_path.rglob("traceback.txt")
    assert "broken_study.py" in kept.read_text()
    assert str(kept.relative_to(tmp_path)) in errors
    status = json.loads((kept.parent / "status.json").read_text())
    assert status["status"] == "failed" and "ZeroDivisionError" in status["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["basic", "joblib"])
def test_a_job_that_exits_has_failed_and_the_others_go_on(tmp_path, name):
    given = [] if name == "basic" else [launcher(name)]
    study = ("study._target_=tests.experiments.broken_study.Paired", "+study.leaves=true")
    code, table, _ = finish(start(tmp_path, *given, *study, "seed=1,2"))
    assert code == 1
    assert list(table["state"].str.startswith("failed: SystemExit: 0")) == [True, True]
    assert len(list(tmp_path.rglob("traceback.txt"))) == 2


@pytest.mark.slow
def test_jobs_in_other_processes_end_in_order_with_the_sweep(tmp_path):
    long = (*TINY[1:], "repeats=3000", "seed=1,2")
    process = start(tmp_path, launcher("joblib"), "hydra.launcher.n_jobs=2", *long)
    deadline_s = time.monotonic() + 600
    while len(begun := {path.parents[2] for path in tmp_path.rglob("requests.jsonl")}) < 2:
        assert process.poll() is None and time.monotonic() < deadline_s
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    code, table, errors = finish(process)
    assert code == 130, errors
    assert list(table["state"]) == ["failed: interrupted"] * 2
    for folder in begun:
        assert json.loads((folder / "status.json").read_text())["status"] == "interrupted"
        assert (folder / "requests.parquet").exists()
