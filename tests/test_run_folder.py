"""Who may write into a run folder, and what happens to what was there."""

import json
import os
from pathlib import Path

import pytest

from bellman.errors import RunError
from bellman.run_folder import claim_folder, reached, run_id

IDENTITY = run_id({"seed": 1})


def test_the_identity_is_the_configurations_values_whatever_their_order():
    assert run_id({"seed": 1}) == IDENTITY
    others = [run_id({"seed": 2}), run_id({"seed": 1.5}), run_id({"seeds": 1})]
    assert len({IDENTITY, *others}) == 4
    assert run_id({"a": 1, "b": {"c": 2, "d": 3}}) == run_id({"b": {"d": 3, "c": 2}, "a": 1})


def test_a_finished_run_is_known(tmp_path):
    with claim_folder(tmp_path / "run", IDENTITY) as folder:
        assert reached(folder.path, IDENTITY) == "running"
        folder.set_status("done")
    assert reached(folder.path, IDENTITY) == "done"
    assert reached(folder.path, "another") is None
    assert reached(tmp_path / "nowhere", IDENTITY) is None


@pytest.mark.parametrize("status", ["running", "interrupted", "failed", "recorded", "done"])
def test_what_is_there_stays_and_how_far_it_came_is_said(tmp_path, status):
    with claim_folder(tmp_path / "run", IDENTITY) as folder:
        assert folder.found is None
        (folder.path / "requests.jsonl").write_text("recorded")
        folder.set_status(status)
    with claim_folder(tmp_path / "run", IDENTITY) as folder:
        assert folder.found == status
        # A finished run may only be shown again; any other goes on.
        going_on = "done" if status == "done" else "running"
        assert reached(tmp_path / "run", IDENTITY) == going_on
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (tmp_path / "run" / "requests.jsonl").read_text() == "recorded"


def test_another_run_in_the_folder_is_refused(tmp_path):
    with claim_folder(tmp_path / "run", IDENTITY) as folder:
        folder.set_status("done")
    with pytest.raises(RunError, match="choose another `folder`"):
        claim_folder(tmp_path / "run", "another")


def test_a_folder_with_other_things_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match="is no run folder"):
        claim_folder(tmp_path, IDENTITY)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_folders_place_is_refused(tmp_path):
    (tmp_path / "run").write_text("precious")
    with pytest.raises(RunError, match="is no folder: choose another `folder`"):
        claim_folder(tmp_path / "run", IDENTITY)
    with pytest.raises(RunError, match="cannot be written"):
        claim_folder(tmp_path / "run" / "deeper", IDENTITY)
    assert (tmp_path / "run").read_text() == "precious"


def test_a_place_where_nobody_can_write_is_one_line():
    with pytest.raises(RunError, match=r"/proc/run cannot be written .*: choose another `folder`"):
        claim_folder(Path("/proc/run"), IDENTITY)


def test_an_empty_folder_is_taken(tmp_path):
    assert claim_folder(tmp_path, IDENTITY).path == tmp_path


def test_a_linked_folder_is_used_where_it_is_and_stays_linked(tmp_path):
    (tmp_path / "big_disk").mkdir()
    (tmp_path / "run").symlink_to("big_disk")
    for _ in range(2):
        with claim_folder(tmp_path / "run", IDENTITY) as folder:
            (folder.path / "requests.jsonl").write_text("recorded")
    assert (tmp_path / "run").is_symlink()
    assert (tmp_path / "big_disk" / "status.json").exists()
    assert (tmp_path / "big_disk" / "requests.jsonl").read_text() == "recorded"


DAMAGED = ["", "{}", '{"status": "runn', "[]", "null", "\xff\xfe", '{"status": null}', "[" * 10**5]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_status_names_the_file_and_the_remedy(tmp_path, content):
    with claim_folder(tmp_path / "run", IDENTITY) as folder:
        (folder.path / "requests.jsonl").write_text("recorded")
    status = tmp_path / "run" / "status.json"
    status.write_bytes(content.encode("latin-1"))
    with pytest.raises(RunError) as caught:
        claim_folder(tmp_path / "run", IDENTITY)
    assert str(caught.value).startswith(f"{status} cannot be read")
    assert "remove it" in str(caught.value) and "\n" not in str(caught.value)
    assert (tmp_path / "run" / "requests.jsonl").read_text() == "recorded"
    # The remedy is one.
    status.unlink()
    claim_folder(tmp_path / "run", IDENTITY).release()
    assert (tmp_path / "run" / "requests.jsonl").read_text() == "recorded"


@pytest.mark.parametrize(
    "process",
    [
        *(None, [], {"pid": 5}, {"process_id": 10**30}, {"process_id": None}, {"process_id": "x"}),
        *({"process_id": -5}, {"start_ticks": "x"}, {"host": 5}, {"more": 1}),
    ],
)
def test_a_status_that_does_not_say_whose_it_is_names_the_file(tmp_path, process):
    claim_folder(tmp_path / "run", IDENTITY).release()
    file = tmp_path / "run" / "status.json"
    status = json.loads(file.read_text())
    if isinstance(process, dict) and "pid" not in process:
        process = status["process"] | process
    file.write_text(json.dumps(status | {"process": process}))
    with pytest.raises(
        RunError, match=r"status\.json cannot be read \(it does not say whose it is"
    ):
        claim_folder(tmp_path / "run", IDENTITY)


def test_a_status_without_a_word_of_its_lock_proves_nothing(tmp_path):
    claim_folder(tmp_path / "run", IDENTITY).release()
    file = tmp_path / "run" / "status.json"
    status = json.loads(file.read_text())
    del status["locked"]
    file.write_text(json.dumps(status))
    with pytest.raises(RunError, match=f"process {os.getpid()} on"):
        claim_folder(tmp_path / "run", IDENTITY)


def test_a_folder_that_a_live_process_writes_without_a_lock_is_refused(tmp_path):
    """By the process's start: another one that was given the same number later does not count."""
    claim_folder(tmp_path / "run", IDENTITY).release()
    file = tmp_path / "run" / "status.json"
    status = json.loads(file.read_text())
    file.write_text(json.dumps(status | {"locked": False}))
    with pytest.raises(RunError, match=f"process {os.getpid()} on"):
        claim_folder(tmp_path / "run", IDENTITY)
    status["process"]["start_ticks"] -= 1
    file.write_text(json.dumps(status | {"locked": False}))
    claim_folder(tmp_path / "run", IDENTITY).release()
