"""Errors between two runs of a queue whose speeds are known."""

import json

import pytest
from rich.console import Console

from analysis.frames import load_run
from analysis.replay.errors import METRICS, compare
from analysis.replay.present import replay
from tests.analysis.synthetic_run import Synthetic, write_run


def test_the_same_run_twice_has_no_error(tmp_path):
    run = load_run(write_run(tmp_path / "a", Synthetic()))
    comparisons = compare(run, run)
    assert len(comparisons) == 2 * len(METRICS)
    assert {found.error for found in comparisons} == {0.0}
    targets = {found.metric: found.target for found in comparisons}
    assert targets["e2e mean"] == "met (within 15%)"
    assert targets["completed"] == "met (within 5%)"
    assert targets["e2e p99"] == "n/a"


def test_a_slower_simulation_misses_its_targets(tmp_path):
    # Half the calm rate's speed: the queue of the uncontrolled arm grows much faster.
    measured = load_run(write_run(tmp_path / "a", Synthetic()))
    simulated = load_run(write_run(tmp_path / "b", Synthetic(speed=0.5, overload=2.38)))
    found = {(row.arm, row.metric): row for row in compare(measured, simulated)}
    assert found["none", "e2e mean"].error > 1
    assert found["none", "e2e mean"].target == "missed (within 15%)"
    assert found["none", "completed"].error == pytest.approx(-0.5, abs=0.05)


def test_an_arm_without_an_answer_is_not_available(tmp_path):
    measured = load_run(write_run(tmp_path / "a", Synthetic()))
    simulated = load_run(write_run(tmp_path / "b", Synthetic(fail_all=True)))
    found = {(row.arm, row.metric): row for row in compare(measured, simulated)}
    assert found["none", "e2e mean"].error is None
    assert found["none", "e2e mean"].target == "n/a"


def test_shows_a_folder(tmp_path, capsys):
    write_run(tmp_path / "measured", Synthetic(source="measured"))
    write_run(tmp_path / "simulated", Synthetic())
    batch = {"first_error": 0.01, "last_error": -0.03}
    (tmp_path / "fit.json").write_text(
        json.dumps({"batches": [batch, batch], "drift": [-0.01, 0.04]})
    )
    replay(tmp_path, Console(width=120), draw=True)
    shown = capsys.readouterr().out
    assert "error mean 2.0%, largest 3.0%" in shown
    assert "against before them: -1.0% to +4.0% (drift and noise)" in shown
    assert (tmp_path / "figures" / "replay_latency.pdf").stat().st_size > 0
    written = json.loads((tmp_path / "validation.json").read_text())
    assert len(written) == 2 * len(METRICS)
    assert all(row["error"] == 0 for row in written)
