"""The same command does what is missing: after a kill, a failure, an edit."""

import hashlib
import io
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from analysis import made
from bellman.errors import RunError
from bellman.responses.recorded import PACKAGED, read_recorded, write_recorded
from experiments.cells.episode import EpisodeCell
from experiments.execute import execute
from tests.experiments.conftest import SMALL, TINY, read_config

ROOT = Path(__file__).parents[2]
WITH_A_CAPACITY = ("arrivals.capacity_rps=null", "capacity.warmup_s=20", "capacity.duration_s=20")
"""Measured in a moment."""
FRAMES = ("requests.parquet", "timeline.parquet", "texts.parquet", "episodes.json", "energy.json")


def run(folder: Path, *overrides: str, draw: bool = False) -> Path:
    config = read_config(*SMALL, f"folder={folder}", *overrides)
    return execute(config, Console(quiet=True), draw=draw)


def run_tiny(folder: Path, *overrides: str) -> Path:
    config = read_config(*TINY, f"folder={folder}", *overrides)
    return execute(config, Console(quiet=True), draw=False)


def frames(folder: Path) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FRAMES}


def written(folder: Path) -> dict[str, int]:
    """When each episode of a folder was done."""
    done = folder.glob("episodes/*/episode.json")
    return {path.parent.name: path.stat().st_mtime_ns for path in done}


@pytest.fixture(scope="module")
def unbroken(run_small) -> Path:
    return run_small()


def kill_and_finish(folder: Path, kills: int) -> None:
    """Start a run again and again, killing it at random moments, and let it finish at last."""
    command = [sys.executable, str(ROOT / "run.py"), *SMALL, f"folder={folder}"]
    moments = random.Random(kills)
    for _ in range(kills):
        process = subprocess.Popen(
            command, cwd=folder.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        begun = len(list(folder.glob("episodes/*")))
        deadline_s = time.monotonic() + 600
        while process.poll() is None and time.monotonic() < deadline_s:
            if len(list(folder.glob("episodes/*"))) > begun or moments.random() < 0.02:
                break
            time.sleep(0.01)
        time.sleep(moments.random() * 0.5)
        process.send_signal(signal.SIGKILL)
        process.wait()
    result = subprocess.run(
        command, cwd=folder.parent, capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_twenty_kills_leave_the_frames_of_a_run_that_was_not_killed(unbroken, tmp_path):
    kill_and_finish(tmp_path / "run", kills=20)
    assert frames(tmp_path / "run") == frames(unbroken)


def test_a_finished_run_is_shown_again_and_nothing_runs(unbroken):
    before = written(unbroken)
    assert len(before) == 5
    run(unbroken)
    assert written(unbroken) == before


def test_what_is_missing_runs_again_and_comes_out_the_same(unbroken, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    lost = sorted(path.parent for path in folder.glob("episodes/*/begun.json"))[1]
    (lost / "episode.json").unlink()
    (lost / "requests.jsonl").write_bytes((lost / "requests.jsonl").read_bytes()[:5000])
    before = written(folder)
    run(folder)
    after = written(folder)
    assert set(after) - set(before) == {lost.name}
    assert {key: after[key] for key in before} == before
    assert frames(folder) == frames(unbroken)


@pytest.mark.slow
def test_a_failed_episode_is_named_and_costs_its_own_comparison_alone(tmp_path, monkeypatch):
    serve = EpisodeCell.run

    def fail(cell, folder, parts, watch):
        if (cell.arm, cell.repeat) == ("threshold", 1):
            raise RunError("the dog ate it")
        return serve(cell, folder, parts, watch)

    three = ("arm=[none,bellman,threshold]", "repeats=2")
    with monkeypatch.context() as patch, pytest.raises(RunError) as caught:
        patch.setattr(EpisodeCell, "run", fail)
        run_tiny(tmp_path / "run", *three)
    assert "1 episode failed (2/2 threshold: the dog ate it)" in str(caught.value)
    folder = tmp_path / "run"
    assert json.loads((folder / "status.json").read_text())["status"] == "failed"
    claims = json.loads((folder / "claims.json").read_text())
    assert claims["repeats"] == {"bellman": [0, 1], "threshold": [0]}
    summary = json.loads((folder / "summary.json").read_text())
    counts = {arm: values["complete_repeats"] for arm, values in summary["arms"].items()}
    assert counts == {"none": [0, 1], "bellman": [0, 1], "threshold": [0]}
    assert summary["cut_short"] == "failed"

    before = written(folder)
    run_tiny(folder, *three)
    assert len(set(written(folder)) - set(before)) == 1
    assert json.loads((folder / "status.json").read_text())["status"] == "done"
    assert json.loads((folder / "claims.json").read_text())["repeats"]["threshold"] == [0, 1]
    assert json.loads((folder / "summary.json").read_text())["cut_short"] is None


def test_an_unexpected_error_leaves_its_traceback_in_the_episodes_folder(tmp_path, monkeypatch):
    def fail(cell, folder, parts, watch):
        raise ZeroDivisionError("by nothing")

    shown = io.StringIO()
    config = read_config(*TINY, "repeats=2", f"folder={tmp_path / 'run'}")
    with monkeypatch.context() as patch, pytest.raises(RunError, match=r"4 episodes failed"):
        patch.setattr(EpisodeCell, "run", fail)
        execute(config, Console(file=shown, width=200))
    after_progress = shown.getvalue().partition("failed run: ")[2]
    assert after_progress.startswith("4 episodes failed (1/2 none: ZeroDivisionError: by nothing")
    assert "nothing to compare: no repeat ran to its end" in after_progress
    assert "n/a" not in after_progress and "claims of the paper" not in after_progress
    page = (tmp_path / "run" / "report.html").read_text()
    assert "nothing to compare" in page and "<h2>Arms</h2>" not in page
    errors = list((tmp_path / "run").glob("episodes/*/error.txt"))
    assert len(errors) == 4
    assert "ZeroDivisionError: by nothing" in errors[0].read_text()


@pytest.mark.usefixtures("no_figures")
def test_another_analysis_makes_the_claims_again_and_no_episode(unbroken, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    run(folder, draw=True)
    before = written(folder)
    first = json.loads((folder / "claims.json").read_text())["made_by"]
    monkeypatch.setattr("analysis.summarize.analysis_digest", lambda: "edited")
    monkeypatch.setattr(made, "analysis_digest", lambda: "edited")
    run(folder, draw=True)
    assert written(folder) == before
    assert json.loads((folder / "claims.json").read_text())["made_by"] == "edited" != first


@pytest.mark.slow
def test_another_content_of_a_bank_makes_the_episodes_again(tmp_path):
    bank = tmp_path / "bank.parquet"
    shutil.copy(PACKAGED / "bank_smollm2_135m_aclsum.parquet", bank)
    named = ("engine/bank=recorded", f"engine.bank.path={bank}", *WITH_A_CAPACITY)
    folder = run_tiny(tmp_path / "run", *named)
    before = written(folder)
    table, metadata = read_recorded(bank)
    rows = table.to_pandas()
    rows["output_tokens"] += 1
    write_recorded(type(table).from_pandas(rows, schema=table.schema), metadata, bank)
    run_tiny(folder, *named)
    again = set(written(folder)) - set(before)
    assert len(again) == len(before) == 3  # the capacity, and an episode of each arm
    tokens = pd.read_parquet(folder / "requests.parquet")["episode_id"]
    assert set(tokens) <= again


def test_frames_have_the_episode_and_a_column_for_each_axis(tmp_path):
    axes = "study.axes={arms.bellman.controller.q_low: [40, 80], seed: [1, 2]}"
    folder = run_tiny(tmp_path / "run", "study=grid", axes)
    table = pq.read_table(folder / "requests.parquet").to_pandas()
    places = table.groupby(["arms.bellman.controller.q_low", "seed", "arm"])["episode_id"]
    assert (places.nunique() == 1).all() and len(places) == 8
    # An axis of the law alone leaves the baseline as it is: it ran once for each seed.
    assert table.loc[table["arm"] == "none", "episode_id"].nunique() == 2
    assert table.loc[table["arm"] == "bellman", "episode_id"].nunique() == 4
    found = json.loads((folder / "grid.json").read_text())
    assert [point["axes"]["seed"] for point in found["points"]] == [1, 2, 1, 2]
    assert {len(point["claims"]) for point in found["points"]} == {3}
