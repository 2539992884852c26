"""A finished run in a tracker's words: nothing unknown becomes a number."""

import json
import math
from pathlib import Path

import pytest

from analysis.frames import load_run
from analysis.summarize import summarize
from analysis.track.entries import Entries, entries_of
from bellman.errors import RunError
from bellman.records import write_json
from tests.analysis.synthetic_run import Synthetic, write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_run(tmp_path_factory.mktemp("run") / "synthetic", Synthetic(repeats=1))
    summarize(load_run(folder))
    set_status(folder, "done")
    return folder


@pytest.fixture(scope="module")
def entries(folder: Path) -> Entries:
    return entries_of(folder)


def set_status(folder: Path, status: str) -> None:
    said = {"status": status, "run_id": "0123456789ab", "time_utc": "2026-11-30T12:00:00+00:00"}
    write_json(said, folder / "status.json")


def test_every_number_is_that_of_the_files(folder: Path, entries: Entries) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    congested = summary["arms"]["bellman"]["phases"]["congested"]
    assert entries.metrics["bellman.phases.congested.e2e_mean_s"] == congested["e2e_mean_s"]
    energy = json.loads((folder / "claims.json").read_text())["claims"][1]
    named = f"claim.bellman.energy.estimate_{energy['unit']}"
    assert entries.metrics[named] == energy["estimate"]
    assert entries.tags["verdict.bellman.energy"] == energy["verdict"]
    assert entries.tags["source"] == "simulated"


def test_what_is_null_is_no_metric(folder: Path, entries: Entries) -> None:
    congested = json.loads((folder / "summary.json").read_text())["arms"]["none"]["phases"]
    assert congested["congested"]["chunk_gap_p50_s"] is None
    assert "none.phases.congested.chunk_gap_p50_s" not in entries.metrics
    assert all(math.isfinite(value) for value in entries.metrics.values())
    assert int(entries.tags["null_or_infinite"].split()[0]) > 0


def test_a_percentile_that_is_lost_is_no_metric(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    set_status(folder, "done")
    write_json({"arms": {"none": {"e2e_p99_s": "inf", "offered": 3}}}, folder / "summary.json")
    entries = entries_of(folder)
    assert entries.metrics == {"none.offered": 3.0}
    assert entries.tags["null_or_infinite"].startswith("1 ")


def test_the_configuration_is_a_dotted_key_each(entries: Entries) -> None:
    assert all(isinstance(value, str) for value in entries.parameters.values())
    assert any("." in key for key in entries.parameters)


def test_another_analysis_is_another_digest(folder: Path, entries: Entries) -> None:
    assert entries_of(folder).digest == entries.digest
    changed = json.loads((folder / "summary.json").read_text())
    changed["arms"]["none"]["offered"] += 1
    write_json(changed, folder / "summary.json")
    assert entries_of(folder).digest != entries.digest


@pytest.mark.parametrize("status", ["running", "recorded", "failed"])
def test_only_runs_that_are_done_are_copied(tmp_path: Path, status: str) -> None:
    with pytest.raises(RunError, match="holds no run: only runs that are done are copied"):
        entries_of(tmp_path)
    set_status(tmp_path, status)
    with pytest.raises(RunError, match=f"is {status}: only runs that are done are copied"):
        entries_of(tmp_path)
