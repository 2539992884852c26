"""What is made from records that were damaged, cut or copied: every good line, and what is lost."""

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

from analysis.frames import load_run
from analysis.present import main as present_again
from tests.experiments.test_resume import frames, run

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture(scope="module")
def whole(run_small) -> Path:
    return run_small()


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def episode(folder: Path, arm: str, repeat: int) -> Path:
    for begun in folder.glob("episodes/*/begun.json"):
        content = json.loads(begun.read_text())
        if (content["arm"], content["repeat"]) == (arm, repeat):
            return begun.parent
    raise AssertionError(f"no episode of {arm} {repeat}")


def requests(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "requests.parquet")


def notes(folder: Path) -> list[str]:
    found: list[str] = json.loads((folder / "gathered.json").read_text())["notes"]
    return found


@pytest.mark.parametrize(
    "damages", [("lost", "empty", "cut"), ("empty", "cut", "lost"), ("cut", "lost", "empty")]
)
def test_lost_and_damaged_frames_are_made_again_from_the_lines(folder, whole, damages):
    for name, damage in zip(("requests", "timeline", "texts"), damages, strict=True):
        file = folder / f"{name}.parquet"
        content = file.read_bytes()
        file.unlink()
        if damage != "lost":
            file.write_bytes(b"" if damage == "empty" else content[: len(content) // 2])
    assert present_again([str(folder)]) == 0
    assert frames(folder) == frames(whole)
    assert notes(folder) == []
    assert json.loads((folder / "status.json").read_text())["status"] == "done"


def test_every_good_line_is_taken_and_the_others_are_named_and_counted(folder, capsys):
    lines = episode(folder, "bellman", 1) / "requests.jsonl"
    good = lines.read_bytes().splitlines(keepends=True)
    bad = [
        b'{"repeat": 1}\n',
        b"\xff\xfe\n",
        b'{"half": \n',
        b"[" * 5000 + b"\n",
        json.dumps(json.loads(good[5]) | {"status": "fine"}).encode() + b"\n",
    ]
    twice, nuls, cut = good[7], b"\0" * 4096 + good[8], good[-1][:40]
    lines.write_bytes(b"".join([*good[:8], *bad, twice, nuls, *good[9:-1], cut]))
    before = len(requests(folder))
    assert present_again([str(folder)]) == 0
    assert len(requests(folder)) == before - 1  # the one that was cut off
    assert not requests(folder).duplicated(["episode_id", "request_id"]).any()
    (first, second, *_) = notes(folder)
    assert first.startswith("2/2 bellman, requests: 6 of")
    assert "line 9: another schema version" in first and "and 3 more" in first
    assert second == "2/2 bellman, requests: 1 records twice, taken once"
    assert "2/2 bellman, requests: 1 records are lost" in notes(folder)
    shown = capsys.readouterr().out
    assert "6 of" in shown.replace("\n", " ")
    assert any("records are lost" in text for text in load_run(folder).warnings)


@pytest.mark.slow
def test_an_episode_that_was_cut_is_there_as_far_as_it_came(folder, whole):
    cut = episode(folder, "bellman", 1)
    (cut / "episode.json").unlink()
    lines = cut / "requests.jsonl"
    kept = lines.read_bytes().splitlines(keepends=True)[:300]
    lines.write_bytes(b"".join(kept) + b'{"repeat": 1, "arm": "bell')
    status = json.loads((folder / "status.json").read_text())
    process = status["process"] | {"process_id": 2**22 - 1, "start_ticks": 1}
    (folder / "status.json").write_text(
        json.dumps(status | {"status": "running", "process": process})
    )
    assert present_again([str(folder)]) == 0
    of_cut = requests(folder)[requests(folder)["episode_id"] == cut.name]
    assert len(of_cut) == (requests(whole)["episode_id"] == cut.name).sum()
    lost = of_cut[of_cut["status"] == "unfinished"]
    assert len(lost) == len(of_cut) - 300
    assert set(lost["reason"]) == {"interrupted: no record was written"}
    assert lost["sent_s"].isna().all() and lost["intended_s"].notna().all()
    found = load_run(folder)
    assert found.cut_short == "interrupted"
    assert found.complete_repeats("bellman") == [0]
    assert json.loads((folder / "claims.json").read_text())["repeats"] == {"bellman": [0]}
    # The same command then runs that episode alone, and nothing is different any more.
    run(folder)
    assert frames(folder) == frames(whole)


def test_a_folder_that_a_process_writes_into_is_left_alone(folder, capsys):
    status = json.loads((folder / "status.json").read_text())
    assert status["process"]["process_id"] == os.getpid()
    (folder / "status.json").write_text(json.dumps(status | {"status": "running", "locked": False}))
    before = (folder / "requests.parquet").stat().st_mtime_ns
    assert present_again([str(folder)]) == 1
    assert f"is being written by process {os.getpid()}" in capsys.readouterr().err
    assert (folder / "requests.parquet").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("plan.jsonl", "{", "plan.jsonl, line 1 cannot be read"),
        ("plan.jsonl", None, "no plan.jsonl"),
        ("study.json", "{}", "study None is not one of"),
        ("study.json", '{"study": "os.system"}', "study 'os.system' is not one of"),
        ("status.json", "", "status.json cannot be read (it is empty)"),
        ("status.json", "[" * 10**5, "status.json cannot be read (maximum recursion depth"),
        ("status.json", '{"status": null}', "status.json cannot be read (it says no status)"),
        ("study.json", "[]", "study.json cannot be read (it is no JSON object)"),
        ("plan.jsonl", "[" * 10**5, "plan.jsonl, line 1 cannot be read"),
        ("plan.jsonl", "\udcff", "plan.jsonl, line 1 cannot be read"),
    ],
)
def test_a_broken_file_is_one_line_that_names_it(folder, capsys, name, content, message):
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content, errors="surrogateescape")
    assert present_again([str(folder)]) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "it has no arm, repeat, source, schedule_hash, energy, lines"),
        ("[]", "it is no JSON object"),
        ("[" * 10**5, "maximum recursion depth"),
    ],
)
def test_a_broken_episode_is_one_line_that_names_it(folder, capsys, content, message):
    file = episode(folder, "none", 0) / "episode.json"
    file.write_text(content)
    assert present_again([str(folder)]) == 1
    error = capsys.readouterr().err
    assert f"{file} cannot be read ({message}" in error and error.count("\n") == 1
