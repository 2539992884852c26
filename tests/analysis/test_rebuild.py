import json
import os
from pathlib import Path

import pandas as pd
import psutil
import pytest

from analysis.frames import load_run
from analysis.rebuild import INTERRUPTED, main, rebuild, rebuild_records
from analysis.summarize import summarize
from bellman.errors import RunError
from bellman.records import write_json
from tests.analysis.synthetic_run import Synthetic, interrupt, write_run

MADE_AT_THE_END = ("requests.parquet", "timeline.parquet", "texts.parquet", "quality.parquet")


@pytest.fixture
def killed(tmp_path):
    """A run of two repeats of two arms, killed in the last episode in the middle of a line."""
    return kill(write_run(tmp_path / "run", Synthetic(repeats=2)))


def kill(folder: Path) -> Path:
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
    assert "interrupted run: claims and arms are over 1 of 2 repeats" in capsys.readouterr().out
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
    writer = psutil.Process(os.getppid())  # some process that lives
    status = {"status": "running", "process_id": writer.pid}
    status["process_started_s"] = writer.create_time()
    write_json(status, killed / "status.json")
    with pytest.raises(RunError, match="wait for it"):
        rebuild(killed)
    assert not (killed / "requests.parquet").exists()


def test_a_run_stopped_while_it_was_drawn_lacks_nothing(tmp_path, capsys):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1))
    write_json({"status": "recorded"}, folder / "status.json")
    assert main([str(folder)]) == 0
    assert "interrupted" not in capsys.readouterr().out
    assert load_run(folder).cut_short is None


def test_nothing_recorded_is_one_line(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    assert "nothing was recorded" in capsys.readouterr().err
    (tmp_path / "requests.jsonl").write_text("")
    assert main([str(tmp_path)]) == 1
    assert "run it again" in capsys.readouterr().err


def test_an_interrupted_episode_is_not_complete(tmp_path):
    folder = interrupt(write_run(tmp_path / "run", Synthetic(repeats=2)), sent=30)
    run = load_run(folder)
    assert set(run.requests["reason"].dropna()) == {"the run ended first"}
    assert run.complete_repeats == [0]
    summarize(folder)
    latency = json.loads((folder / "claims.json").read_text())["claims"][0]
    assert latency["estimate"] > 8 and "1 of 2 repeats" in latency["caveats"]


def test_phases_of_a_run_killed_in_its_first_episode_are_those_of_the_schedule(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1))
    expected = load_run(folder).phases
    (folder / "episodes.json").unlink()
    run = load_run(folder)
    assert run.phases == expected
    assert (run.phases[1].start_s, run.phases[1].end_s, run.complete_repeats) == (20.0, 60.0, [])


def test_no_request_is_made_up_where_users_decide_themselves(tmp_path):
    closed = "closed_loop.ClosedLoop, clients: 4, think_s: 0"
    folder = kill(write_run(tmp_path / "run", Synthetic(repeats=2, load_model=closed)))
    rebuild_records(folder)
    assert set(load_run(folder).requests["status"]) == {"ok"}


def test_no_request_is_made_up_in_an_episode_that_ended(killed):
    lines = (killed / "requests.jsonl").read_bytes().splitlines(keepends=True)
    (killed / "requests.jsonl").write_bytes(b"".join(lines[10:]))
    rebuild_records(killed)
    cut = load_run(killed).requests.query("status == 'unfinished'")
    assert len(cut) == 100 and set(cut["repeat"]) == {1}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("episodes.json", b"[{"),
        ("energy.json", b""),
        ("requests.jsonl", b"{}\nnonsense\n"),
        ("schedule.parquet", b"PAR1"),
        ("config.yaml", b"a: [\n"),
        ("timeline.jsonl", b'{"time_s": "x"}\n'),
        ("status.json", b"\xff"),
    ],
)
def test_a_broken_file_is_one_line_that_names_it(killed, capsys, name, content):
    (killed / name).write_bytes(content)
    assert main([str(killed)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and name in error and "cannot be read" in error
