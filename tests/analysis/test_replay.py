"""Errors between two runs of a queue whose speeds are known."""

import io
import json

import pytest
from rich.console import Console

from analysis.frames import load_run
from analysis.replay.errors import METRICS, compare
from analysis.replay.present import draw_figure, fit_line, show
from bellman.records import write_json
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


def test_how_well_the_step_time_fits(tmp_path):
    batch = {"first_error": 0.01, "last_error": -0.03}
    cell = {"id": "k", "kind": "FitCell", "label": "fit", "axes": {"engine": "simulated"}}
    (tmp_path / "plan.jsonl").write_text(json.dumps(cell) + "\n")
    assert fit_line(tmp_path) == "step time: not fitted, the measurement did not end"
    (tmp_path / "episodes" / "k").mkdir(parents=True)
    write_json(
        {"batches": [batch, batch], "drift": [-0.01, 0.04], "front_end": {"mean_ms": 12.5}},
        tmp_path / "episodes" / "k" / "episode.json",
    )
    assert "error mean 2.0%, largest 3.0%" in fit_line(tmp_path)
    assert fit_line(tmp_path).startswith("step time, front end 12.5 ms, fitted to 2 batches")
    assert "against before them: -1.0% to +4.0% (drift and noise)" in fit_line(tmp_path)


def test_shows_what_was_compared(tmp_path):
    measured = load_run(write_run(tmp_path / "measured", Synthetic(source="measured")))
    simulated = load_run(write_run(tmp_path / "simulated", Synthetic()))
    console = Console(width=120, record=True, file=io.StringIO())
    show(compare(measured, simulated), console)
    shown = console.export_text()
    assert "+0.0%" in shown
    assert "met (within 15%)" in shown
    draw_figure(measured, simulated, tmp_path)
    assert (tmp_path / "figures" / "replay_latency.pdf").stat().st_size > 0
