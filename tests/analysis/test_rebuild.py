import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from analysis.frames import load_run
from analysis.rebuild import INTERRUPTED, main, rebuild, rebuild_records
from analysis.summarize import summarize
from bellman.errors import RunError
from bellman.folder_lock import LOCK
from bellman.live_process import this_process
from bellman.records import write_json, write_parquet
from bellman.run_folder import writing_into
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
    finished = write_run(killed.parent / "finished", Synthetic(repeats=1))
    write_json({"status": "done"}, finished / "status.json")
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    with pytest.raises(RunError, match=r"analysis\.figures"):
        rebuild(finished)
    after = {path.name: path.read_bytes() for path in finished.iterdir() if path.name != LOCK}
    assert after == before
    status = {"status": "running", "locked": False, "process": asdict(this_process())}
    write_json(status, killed / "status.json")
    with pytest.raises(RunError, match="wait for it"):
        rebuild(killed)
    write_json({"status": "running"}, killed / "status.json")
    with writing_into(killed), pytest.raises(RunError, match="wait for it"):
        rebuild(killed)
    assert not (killed / "requests.parquet").exists()


def test_a_run_stopped_while_it_was_drawn_lacks_nothing(tmp_path, capsys):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1))
    write_json({"status": "recorded"}, folder / "status.json")
    assert main([str(folder)]) == 0
    assert "interrupted" not in capsys.readouterr().out
    assert load_run(folder).cut_short is None


def test_nothing_recorded_is_one_line(tmp_path, capsys):
    for content, why in (
        (None, "nothing was recorded"),
        (b"", "run it again"),
        (b"{}\n", "line 1"),
    ):
        if content is not None:
            (tmp_path / "requests.jsonl").write_bytes(content)
        assert main([str(tmp_path)]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and why in error


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
        ("schedule.parquet", b"PAR1"),
        ("config.yaml", b"a: [\n"),
        ("status.json", b"\xff"),
    ],
)
def test_a_broken_file_is_one_line_that_names_it(killed, capsys, name, content):
    (killed / name).write_bytes(content)
    assert main([str(killed)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and name in error and "cannot be read" in error


def line_of(folder: Path, number: int, **changes) -> bytes:
    lines = (folder / "requests.jsonl").read_bytes().splitlines()
    return json.dumps(json.loads(lines[number]) | changes).encode()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"nonsense", "not JSON"),
        (b'{"repeat": 0, "arm": "none", "requ', "not JSON"),
        (b"\0" * 4096, "NUL bytes"),
        (b'{"arm": "\xff\xfe"}', "not UTF-8"),
        (b"[1, 2]", "no JSON object"),
        (b"[" * 100_000, "not JSON"),
        ({"colour": "red"}, "another schema version: unknown colour"),
        ({"intended_s": None}, "another schema version: no intended_s"),
        ({"status": "lost"}, "another schema version: unknown status lost"),
        ({"output_tokens": "many"}, "another schema version: output_tokens is no int32"),
        ({"output_tokens": 2**40}, "another schema version: output_tokens is no int32"),
        ({"chunk_gaps_s": [None]}, "another schema version: chunk_gaps_s is no list"),
        ({"document_id": "\ud83d"}, "another schema version: document_id is no string"),
    ],
)
def test_a_bad_line_in_the_middle_costs_itself_alone(tmp_path, bad, reason):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1))
    (folder / "requests.parquet").unlink()
    path = folder / "requests.jsonl"
    lines = path.read_bytes().splitlines()
    broken = bad if isinstance(bad, bytes) else line_of(folder, 9, **bad)
    path.write_bytes(b"\n".join([*lines[:9], broken, *lines[9:], b""]))
    notes = rebuild_records(folder)
    assert len(notes) == 1 and f"requests.jsonl: 1 of {len(lines) + 1} lines" in notes[0]
    assert f"line 10: {reason}" in notes[0]
    assert pd.read_parquet(folder / "requests.parquet")["request_id"].size == len(lines)


def test_a_whole_record_before_or_after_nul_bytes_is_taken(killed):
    path = killed / "requests.jsonl"
    lines = path.read_bytes().splitlines()
    lines[3] = b"\0" * 512 + lines[3]
    lines[4] = lines[4][:30] + b"\0" * 512 + lines[4]
    path.write_bytes(b"\n".join(lines[:-1]))  # the last one whole, without its line's end
    notes = rebuild_records(killed)
    assert notes == [f"requests.jsonl: 1 of {len(lines) - 1} lines not usable (line 5: not JSON)"]
    assert (pd.read_parquet(killed / "requests.parquet")["reason"] != INTERRUPTED).sum() == (
        len(lines) - 1
    )


def test_a_record_twice_counts_once(killed):
    path = killed / "requests.jsonl"
    path.write_bytes(line_of(killed, 0) + b"\n" + line_of(killed, 1) + b"\n" + path.read_bytes())
    timeline = pd.DataFrame([{"repeat": 0, "arm": "none", "time_s": 1.0, "phase": "calm"}] * 3)
    timeline.assign(source="simulated").to_json(
        killed / "timeline.jsonl", orient="records", lines=True
    )
    notes = rebuild_records(killed)
    assert "requests.jsonl: 2 records twice, taken once" in notes
    assert "timeline.jsonl: 2 records twice, taken once" in notes
    requests = pd.read_parquet(killed / "requests.parquet")
    assert not requests.duplicated(["repeat", "arm", "request_id"]).any()
    assert len(pd.read_parquet(killed / "timeline.parquet")) == 1


def test_what_was_not_usable_is_said_everywhere(killed, capsys):
    path = killed / "requests.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([b"[/x] nonsense", *lines[1:], b""]))
    assert main([str(killed)]) == 0
    said = f"requests.jsonl: 2 of {len(lines)} lines not usable (line 1: not JSON; line"
    missing = "1 requests of ended episodes have no record"
    console = capsys.readouterr().out
    assert said in console and missing in console
    warnings = json.loads((killed / "summary.json").read_text())["warnings"]
    assert said in warnings[0] and missing in warnings[1]
    assert said in (killed / "report.html").read_text()


@pytest.mark.parametrize("damage", ["lost", "empty", "cut"])
@pytest.mark.parametrize("name", ["requests", "timeline", "texts"])
def test_a_finished_run_gets_its_parquet_back_from_its_lines(tmp_path, name, damage):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1))
    write_json({"status": "done"}, folder / "status.json")
    path = folder / f"{name}.parquet"
    whole = pd.read_parquet(path)
    records = pq.read_table(path).to_pylist()
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
    data = path.read_bytes()
    path.unlink()
    if damage != "lost":
        path.write_bytes(b"" if damage == "empty" else data[: len(data) // 2])
    rebuild(folder)
    pd.testing.assert_frame_equal(pd.read_parquet(path), whole)
    assert json.loads((folder / "status.json").read_text())["status"] == "done"
    assert load_run(folder).cut_short is None
    kept = folder / f"{name}.parquet.unreadable-1"
    assert kept.exists() == (damage != "lost")


def test_scores_that_cannot_be_read_do_not_hold_up_the_rest(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1))
    write_json({"status": "done"}, folder / "status.json")
    (folder / "quality.parquet").write_bytes(b"PAR1")
    assert rebuild(folder) == ["quality.parquet: cannot be read: the answers count as not scored"]
    assert load_run(folder).quality is None
    assert (folder / "quality.parquet.unreadable-1").exists()


@pytest.mark.parametrize("lines_left", [0, 10])
def test_fewer_lines_never_replace_more_records(tmp_path, lines_left):
    folder = interrupt(write_run(tmp_path / "run", Synthetic(repeats=2)), sent=30)
    before = pd.read_parquet(folder / "requests.parquet")
    lines = (folder / "requests.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "requests.jsonl").write_bytes(b"".join(lines[:lines_left]))
    rebuild_records(folder)
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "requests.parquet"), before)


def test_lines_and_parquet_complete_each_other(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1))
    path = folder / "requests.parquet"
    whole = pq.read_table(path)
    write_parquet(whole.slice(0, len(whole) // 2), path)
    lines = (folder / "requests.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "requests.jsonl").write_bytes(b"".join(lines[len(whole) // 4 :]))
    rebuild_records(folder)
    pd.testing.assert_frame_equal(pd.read_parquet(path), whole.to_pandas())
