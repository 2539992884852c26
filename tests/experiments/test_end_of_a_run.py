"""What can fail at a run's end: tried before it, or made later from the records; any terminal."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from analysis import present
from analysis.frames import load_run
from bellman.errors import RunError
from bellman.timeline import TimelineRow
from experiments import preflight
from experiments.execute import execute
from experiments.recorder import Recorder
from tests.experiments.conftest import TINY, read_config
from tests.experiments.test_sweep import ROOT


def run(place: Path, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **how.pop("env", {})}
    return subprocess.run(
        [sys.executable, str(ROOT / "run.py"), "folder=run", *arguments],
        cwd=place,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
        **how,
    )


def status(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return content


def episodes(folder: Path) -> dict[str, bytes]:
    """Return every line of every episode."""
    return {str(path): path.read_bytes() for path in folder.glob("episodes/*/*.jsonl")}


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_stops_before_anything_runs(tmp_path):
    result = run(tmp_path, *TINY, env={"HF_HOME": "/proc/nothing"}, stdout=subprocess.DEVNULL)
    assert result.returncode == 1
    assert result.stderr.startswith("error: nothing was run") and "HF_HOME" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_an_inherited_backend_and_an_ascii_terminal_do_no_harm(tmp_path):
    odd = {"MPLBACKEND": "nonexistent", "LC_ALL": "C", "PYTHONUTF8": "0", "TERM": ""}
    odd["PYTHONCOERCECLOCALE"] = "0"
    result = run(tmp_path, *TINY, env=odd, stdout=subprocess.DEVNULL)
    assert result.returncode == 0, result.stderr
    assert list((tmp_path / "run" / "figures").glob("*.svg"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    ["full", *(pytest.param(where, marks=pytest.mark.slow) for where in ("closed", "gone"))],
)
def test_output_that_goes_nowhere_ends_no_run(tmp_path, where):
    if where == "full":
        with Path("/dev/full").open("w") as full:
            result = run(tmp_path, *TINY, stdout=full)
    elif where == "closed":
        result = run(tmp_path, *TINY, preexec_fn=lambda: (os.close(0), os.close(1)))
    else:
        reader, writer = os.pipe()
        os.close(reader)
        result = run(tmp_path, *TINY, stdout=writer)
        os.close(writer)
    assert result.returncode == 0, result.stderr
    assert status(tmp_path / "run")["status"] == "done"
    assert set(pd.read_parquet(tmp_path / "run" / "requests.parquet")["status"]) == {"ok"}


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param("bellman.quality.score.score_folder", marks=pytest.mark.slow),
        "analysis.present.summarize",
    ],
)
@pytest.mark.usefixtures("no_figures")
def test_a_failure_at_the_end_is_no_lost_run(tmp_path, monkeypatch, failing):
    config = read_config(*TINY, f"folder={tmp_path / 'run'}")

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a mistake")

    with monkeypatch.context() as broken:
        broken.setattr(failing, fail)
        with pytest.raises(RunError, match=r"every record is there; python -m analysis\.present"):
            execute(config, Console(quiet=True))
    assert status(tmp_path / "run")["status"] == "recorded"
    assert "a mistake" in status(tmp_path / "run")["reason"]
    assert "ZeroDivisionError" in (tmp_path / "run" / "traceback.txt").read_text()
    records = episodes(tmp_path / "run")
    assert len(records) == 2 * 3  # two episodes: requests, timeline and texts
    assert present.main([str(tmp_path / "run")]) == 0
    assert status(tmp_path / "run")["status"] == "done"
    assert episodes(tmp_path / "run") == records
    assert load_run(tmp_path / "run").cut_short is None
    assert (tmp_path / "run" / "quality.parquet").exists()


def test_too_little_room_stops_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(preflight, "ROOM_BYTES", 2**60)
    with pytest.raises(RunError, match=r"MiB are free where .*run would be"):
        execute(read_config(*TINY, f"folder={tmp_path / 'run'}"), Console(quiet=True))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_removed_while_the_run_writes_ends_it_in_one_line(tmp_path, monkeypatch):
    config = read_config(*TINY, f"folder={tmp_path / 'run'}")

    def remove(recorder: Recorder, row: TimelineRow) -> None:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        add_row(recorder, row)

    add_row = Recorder.add_row
    monkeypatch.setattr(Recorder, "add_row", remove)
    with pytest.raises(FileNotFoundError, match="Removed during the run"):
        execute(config, Console(quiet=True))
    assert not list(tmp_path.iterdir())
