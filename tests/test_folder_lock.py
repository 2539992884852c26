"""Who gets a folder: real processes that race, are killed, fork, and live in containers."""

import json
import multiprocessing
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bellman.folder_lock import FolderLock, FolderLocked, holder
from bellman.run_folder import claim_folder, reached

ROOT = Path(__file__).parents[1]
PAIRS = 200
UNSHARE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]


@contextmanager
def claimant(*arguments: str, before: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """Run a process that claims folders; kill it at the end."""
    process = subprocess.Popen(
        [*before, sys.executable, "-m", "tests.claimants", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(process: subprocess.Popen[str], folder: Path, at_s: float = 0.0) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{at_s} {folder}\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="locks"),
        pytest.param(("--no-locks",), id="no locks", marks=pytest.mark.slow),
    ],
)
def test_of_two_simultaneous_claims_exactly_one_wins(tmp_path, arguments):
    with claimant(*arguments) as one, claimant(*arguments) as other:
        for pair in range(PAIRS):
            folder = tmp_path / str(pair)
            # New folders, empty ones, and ones that a run left: each has its own way to race.
            if pair % 4 == 1:
                folder.mkdir()
            if pair % 4 == 2:
                folder.mkdir()
                (folder / "claim.lock").touch()
                (folder / "requests.jsonl").write_text("recorded")
            at_s = time.time() + 0.002
            ask(one, folder, at_s)
            ask(other, folder, at_s)
            answers = [answer(one), answer(other)]
            assert answers.count("won") == 1, (pair, answers)
            assert any("wait for it" in line or "remove" in line for line in answers), answers
            if pair % 4 == 2:
                assert (folder / "requests.jsonl").read_text() == "recorded"


@pytest.mark.parametrize("arguments", [(), ("--no-locks",)], ids=["locks", "no locks"])
def test_a_killed_runs_folder_is_free_at_once(tmp_path, arguments):
    folder = tmp_path / "run"
    with claimant(*arguments) as first, claimant(*arguments) as second:
        ask(first, folder)
        assert answer(first) == "won"
        (folder / "requests.jsonl").write_text("recorded")
        ask(second, folder)
        assert f"process {first.pid} on" in answer(second)
        first.kill()
        first.wait()
        ask(second, folder)
        assert answer(second) == "won"
    assert (folder / "requests.jsonl").read_text() == "recorded"


def test_a_run_in_another_pid_namespace_keeps_its_folder(tmp_path):
    if not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], check=False).returncode:
        pytest.skip("this machine does not let a process have a PID namespace of its own")
    folder = tmp_path / "run"
    with claimant(before=tuple(UNSHARE)) as inside, claimant() as outside:
        ask(inside, folder)
        assert answer(inside) == "won"
        ask(outside, folder)
        assert "is being written by process" in answer(outside)
        status = json.loads((folder / "status.json").read_text())
        assert status["process"]["process_id"] < outside.pid
    with claimant(before=tuple(UNSHARE)) as inside:
        ask(inside, folder)
        assert answer(inside) == "won"


@pytest.mark.parametrize("arguments", [(), ("--no-locks",)], ids=["locks", "no locks"])
def test_who_has_a_folder_is_seen_without_a_lock(tmp_path, arguments):
    folder = tmp_path / "run"
    assert holder(folder).holds is False
    with claimant(*arguments) as process:
        ask(process, folder)
        assert answer(process) == "won"
        before = {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}
        seen = holder(folder)
        assert (seen.process.process_id, seen.holds) == (process.pid, True)
        assert {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]} == before
    assert holder(folder).holds is False


def test_who_has_a_folder_in_another_pid_namespace_is_seen_by_the_lock(tmp_path):
    if not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], check=False).returncode:
        pytest.skip("this machine does not let a process have a PID namespace of its own")
    folder = tmp_path / "run"
    with claimant(before=tuple(UNSHARE)) as inside:
        ask(inside, folder)
        assert answer(inside) == "won"
        assert holder(folder).holds is True
        lock = folder / "claim.lock"
        elsewhere = json.loads(lock.read_text()) | {"boot_id": "another", "host": "elsewhere"}
        lock.with_name("other.lock").write_text(json.dumps(elsewhere))
        lock.with_name("other.lock").replace(lock)
        assert holder(folder).holds is None  # of another machine nothing can be seen


def test_a_forked_child_does_not_keep_a_dead_runs_lock(tmp_path):
    lock = FolderLock(tmp_path)
    fork = multiprocessing.get_context("fork")
    forked, ending = fork.Event(), fork.Event()
    child = fork.Process(target=lambda: (forked.set(), ending.wait(60)))
    child.start()
    try:
        assert forked.wait(60)
        with pytest.raises(FolderLocked):
            FolderLock(tmp_path)
        lock.release()
        FolderLock(tmp_path).release()
    finally:
        ending.set()
        child.join()


def test_a_program_that_a_run_starts_does_not_inherit_the_lock(tmp_path):
    lock = FolderLock(tmp_path)
    program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        lock.release()
        FolderLock(tmp_path).release()
    finally:
        program.communicate(b"\n")


def test_a_folder_that_was_moved_is_not_in_place(tmp_path):
    (tmp_path / "run").mkdir()
    lock = FolderLock(tmp_path / "run")
    assert lock.is_in_place()
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    assert not lock.is_in_place()
    lock.release()


def test_the_folder_of_a_process_on_another_machine_is_not_taken_where_locks_are_local(
    tmp_path, monkeypatch
):
    claim_folder(tmp_path / "run", "identity").release()
    file = tmp_path / "run" / "status.json"
    status = json.loads(file.read_text())
    status["process"] |= {"host": "elsewhere", "boot_id": "another"}
    file.write_text(json.dumps(status))
    monkeypatch.setattr("bellman.run_folder.locks_are_local", lambda _: True)
    with pytest.raises(RuntimeError, match=r"on elsewhere, which cannot be seen.*status\.json"):
        claim_folder(tmp_path / "run", "identity")
    # A lock that other machines see is the proof.
    monkeypatch.setattr("bellman.run_folder.locks_are_local", lambda _: False)
    claim_folder(tmp_path / "run", "identity").release()
    assert reached(tmp_path / "run", "identity") == "running"


def test_a_full_disk_at_the_start_blocks_nothing(tmp_path):
    """A file system of one megabyte, filled; only a mount namespace of its own sees it."""
    script = f"""
set -e
mount -t tmpfs -o size=1m none {tmp_path}
dd if=/dev/zero of={tmp_path}/filler bs=4k 2>/dev/null || true
claim() {{
    {sys.executable} -c "
from pathlib import Path
from bellman.run_folder import claim_folder
claim_folder(Path('{tmp_path}/run'), 'identity')
"
}}
if claim 2>{tmp_path}/../errors; then exit 3; fi
rm {tmp_path}/filler
claim
"""
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("this machine does not let a process mount a file system of its own")
    result = subprocess.run(
        [*command, script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "No space left" in (tmp_path.parent / "errors").read_text()
