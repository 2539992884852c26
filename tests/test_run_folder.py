"""Who may write into a run folder, and what happens to what was there."""

import json
import os
import subprocess
import sys

import psutil
import pytest

from bellman.errors import RunError
from bellman.run_folder import claim_folder, reached, run_id

IDENTITY = run_id({"seed": 1}, "code", "corpus")


def test_the_identity_depends_on_config_code_and_corpus_alone():
    assert run_id({"seed": 1}, "code", "corpus") == IDENTITY
    others = [
        run_id({"seed": 2}, "code", "corpus"),
        run_id({"seed": 1}, "other", "corpus"),
        run_id({"seed": 1}, "code", "other"),
    ]
    assert len({IDENTITY, *others}) == 4
    assert run_id({"a": 1, "b": 2}, "", "") == run_id({"b": 2, "a": 1}, "", "")


def test_a_finished_run_is_known(tmp_path):
    folder = claim_folder(tmp_path / "run", IDENTITY)
    assert reached(folder.path, IDENTITY) == "running"
    folder.set_status("done")
    assert reached(folder.path, IDENTITY) == "done"
    assert reached(folder.path, "another") is None
    assert reached(tmp_path / "nowhere", IDENTITY) is None


def test_another_run_in_the_folder_is_refused(tmp_path):
    claim_folder(tmp_path / "run", IDENTITY).set_status("done")
    with pytest.raises(RunError, match="choose another `folder`"):
        claim_folder(tmp_path / "run", "another")


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match="is no run folder"):
        claim_folder(tmp_path, IDENTITY)


def test_an_empty_folder_is_taken(tmp_path):
    assert claim_folder(tmp_path, IDENTITY).path == tmp_path


def test_an_unfinished_try_is_moved_aside_not_lost(tmp_path):
    for _ in range(2):
        folder = claim_folder(tmp_path / "run", IDENTITY)
        folder.set_status("interrupted")
        (folder.path / "requests.jsonl").write_text("recorded")
    claim_folder(tmp_path / "run", IDENTITY)
    for number in (1, 2):
        kept = tmp_path / f"run.unfinished-{number}" / "requests.jsonl"
        assert kept.read_text() == "recorded"


def test_a_folder_that_a_live_process_writes_is_refused(tmp_path):
    folder = claim_folder(tmp_path / "run", IDENTITY)
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        status = json.loads((folder.path / "status.json").read_text())
        status["process_id"] = other.pid
        status["process_started_s"] = psutil.Process(other.pid).create_time()
        (folder.path / "status.json").write_text(json.dumps(status))
        with pytest.raises(RunError, match=f"process {other.pid}"):
            claim_folder(tmp_path / "run", IDENTITY)
        # A later process that was given the same number is another one.
        status["process_started_s"] -= 1000
        (folder.path / "status.json").write_text(json.dumps(status))
        claim_folder(tmp_path / "run", IDENTITY)
    finally:
        other.communicate(b"\n")
    assert os.getpid() != other.pid
