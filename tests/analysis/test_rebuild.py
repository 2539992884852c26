import json
import os

import pandas as pd
import psutil
import pytest

from analysis.frames import INTERRUPTED, load_run
from analysis.rebuild import main, rebuild, rebuild_records
from bellman.errors import RunError
from bellman.records import write_json
from tests.analysis.synthetic_run import Synthetic, write_run

MADE_AT_THE_END = ("requests.parquet", "timeline.parquet", "texts.parquet", "quality.parquet")


@pytest.fixture
def killed(tmp_path):
    """A run of two repeats of two arms, killed in the last episode in the middle of a line."""
    folder = write_run(tmp_path / "run", Synthetic(repeats=2))
    for name in MADE_AT_THE_END:
        (folder / name).unlink()
    lines = (folder / "requests.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "requests.jsonl").write_bytes(b"".join(lines[:-100]) + lines[-100][:40])
    for name in ("episodes.json", "energy.json"):
        content = json.loads((folder / name).read_text())
        if isinstance(content, list):
            content = content[:-1]
        else:
            arm = content["windows"][-1]["arm"]
            content["windows"] = [
                w for w in content["windows"] if (w["repeat"], w["arm"]) != (1, arm)
            ]
        write_json(content, folder / name)
    return folder


def test_a_killed_run_shows_what_it_recorded(killed, capsys):
    assert main([str(killed)]) == 0
    run = load_run(killed)
    schedule = pd.read_parquet(killed / "schedule.parquet")
    assert len(run.requests) == 2 * len(schedule)
    cut = run.requests[run.requests["reason"] == INTERRUPTED]
    assert len(cut) == 100 and set(cut["status"]) == {"unfinished"}
    assert run.complete_repeats == [0]
    assert not run.requests.duplicated(["repeat", "arm", "request_id"]).any()
    claims = json.loads((killed / "claims.json").read_text())
    assert (claims["cut_short"], claims["repeats"]) == ("interrupted", [0])
    latency = claims["claims"][0]
    assert latency["estimate"] > 8 and latency["verdict"] == "not measured"
    assert "1 of 2 repeats" in latency["caveats"]
    assert "interrupted run: claims compare its 1 complete repeats" in capsys.readouterr().out
    assert (killed / "report.html").exists()
    assert len(list((killed / "figures").glob("*.png"))) == 7
    assert json.loads((killed / "status.json").read_text())["status"] == "interrupted"


def test_it_can_be_done_again(killed):
    rebuild_records(killed)
    first = (killed / "requests.parquet").read_bytes()
    rebuild_records(killed)
    assert (killed / "requests.parquet").read_bytes() == first


def test_a_finished_or_a_running_run_is_left_alone(killed):
    write_json({"status": "done"}, killed / "status.json")
    with pytest.raises(RunError, match=r"analysis\.figures"):
        rebuild(killed)
    started_s = psutil.Process().create_time()
    status = {"status": "running", "process_id": os.getpid(), "process_started_s": started_s}
    write_json(status, killed / "status.json")
    with pytest.raises(RunError, match="wait for it"):
        rebuild(killed)
    assert not (killed / "requests.parquet").exists()


def test_nothing_recorded_is_one_line(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    assert "nothing was recorded" in capsys.readouterr().err
    (tmp_path / "requests.jsonl").write_text("")
    assert main([str(tmp_path)]) == 1
    assert "run it again" in capsys.readouterr().err
