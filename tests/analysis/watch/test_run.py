"""What is seen of a run that goes on, ends, fails or is killed; and that nothing is touched."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analysis.watch import tail
from analysis.watch.run import SIMULATED, RunWatch
from bellman.folder_lock import FolderLock, holder
from tests.analysis.watch.run_folder import Writer, ended, energy, sample
from tests.servers import ROOT

NOBODY = "no process holds this folder"


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "run")


def test_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    watch = RunWatch(tmp_path / "run")
    view = watch.look()
    assert (view.state, view.holds) == ("there is no such folder yet", False)
    assert (view.source, view.energy_j, view.left_s) == ("not known before an episode", None, None)
    writer = Writer(tmp_path / "run")
    assert watch.look().state == f"no run has said anything here yet; {NOBODY}"
    writer.plan("EpisodeCell")
    assert watch.look().cells_planned == 1


def test_a_measured_episode_line_by_line(writer: Writer) -> None:
    watch = RunWatch(writer.folder)
    with_lock = FolderLock(writer.folder)
    writer.status("running")
    writer.plan("EpisodeCell", "EpisodeCell")
    writer.cell(0, at_s=time.time())
    view = watch.look()
    assert (
        view.state == f"running; process {os.getpid()} on {os.uname().nodename} holds this folder"
    )
    (cell,) = view.open
    assert (cell.state, cell.sample, cell.p50_s) == ("in progress", None, None)
    assert cell.schedule is not None
    assert (cell.schedule.requests, cell.schedule.end_s) == (40, 100.0)

    writer.append(0, "timeline", sample(0.0), sample(1.0, level=None, energy_j=450.0, waiting=9))
    writer.append(0, "requests", *(ended(number, 2.0) for number in range(3)), ended(3, 0, "error"))
    writer.append(0, "requests", ended(4, 5.0)[:-30])  # cut in the middle of the write
    view = watch.look()
    (cell,) = view.open
    assert cell.sample is not None
    assert (cell.sample.level, cell.sample.waiting, cell.sample.energy_j) == (None, 9, 450.0)
    assert cell.ended == {"ok": 3, "error": 1}
    assert (cell.p50_s, cell.p99_s, cell.latencies) == (2.0, "lost", 4)
    assert cell.curves["level"] == [0.5, None]
    assert (view.source, view.title) == ("measured", "a_night")
    writer.append(0, "requests", ended(4, 5.0)[-30:])
    assert watch.look().open[0].ended == {"ok": 4, "error": 1}
    with_lock.release()


def test_the_time_left_is_an_estimate_from_what_is_done(writer: Writer) -> None:
    lock = FolderLock(writer.folder)
    writer.status("running")
    writer.plan("CapacityCell", "EpisodeCell", "EpisodeCell", "EpisodeCell")
    now_s = time.time()
    writer.cell(0, at_s=now_s - 1000, source=None)
    watch = RunWatch(writer.folder)
    assert watch.look().left_how == "not known before the first CapacityCell, EpisodeCell is done"
    writer.done(0, at_s=now_s - 700, kind="CapacityCell")
    writer.cell(1, at_s=now_s - 700)
    view = watch.look()  # one episode began 700 s ago: of its 100 s none are left
    assert view.left_s == pytest.approx(200, abs=5)
    assert view.left_how.startswith("at least, by the schedule's length without drain")
    writer.done(1, at_s=now_s - 100, kind="EpisodeCell", source="measured", energy=energy(5e5))
    writer.cell(2, at_s=now_s - 100)
    view = watch.look()  # episodes take 600 s, one is 100 s old, one has not begun
    assert view.left_s == pytest.approx(1100, abs=30)
    assert view.left_how == "estimated from 2 done and 2 missing of the cells planned so far"
    assert (view.energy_j, view.energy_text) == (5e5, "of 1 done episodes, without their warm-up")
    lock.release()
    assert (watch.look().left_s, watch.look().left_how) == (None, NOBODY)


def test_several_cells_at_once_share_the_time_left(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run", executor="processes.Processes")
    lock = FolderLock(writer.folder)
    writer.plan(*["EpisodeCell"] * 5)
    now_s = time.time()
    writer.cell(0, at_s=now_s - 200)
    writer.done(0, at_s=now_s - 100, kind="EpisodeCell", source="simulated", energy=energy(1.0))
    writer.cell(1, at_s=now_s - 50, source="simulated")
    writer.cell(2, at_s=now_s - 10, source="simulated")
    view = RunWatch(writer.folder).look()
    assert [cell.state for cell in view.open] == ["in progress", "in progress"]
    assert view.left_s == pytest.approx((50 + 90 + 100 + 100) / 2, abs=10)
    assert (view.source, view.notes) == ("simulated", [SIMULATED])
    lock.release()


def test_joules_that_were_not_measured_are_no_zero(writer: Writer) -> None:
    writer.plan("EpisodeCell", "EpisodeCell", "EpisodeCell")
    watch = RunWatch(writer.folder)
    for number, one in enumerate([energy(None, "no counter"), energy(None, "a hang"), energy(7.0)]):
        writer.cell(number, at_s=0)
        writer.done(number, at_s=1, kind="EpisodeCell", source="measured", energy=one)
        if number == 1:
            view = watch.look()
            assert (view.energy_j, view.energy_text) == (None, "a hang; no counter")
    view = watch.look()
    assert view.energy_j == 7.0
    assert view.energy_text.endswith("; 2 without: a hang; no counter")


def test_a_failed_cell_is_told_from_the_one_that_runs(writer: Writer) -> None:
    lock = FolderLock(writer.folder)
    writer.status("running")
    writer.plan("EpisodeCell", "EpisodeCell", "EpisodeCell")
    for number in range(3):
        folder = writer.cell(number, at_s=1000 + number)
        if number == 0:
            (folder / "error.txt").write_text("Traceback")
    watch = RunWatch(writer.folder)
    view = watch.look()
    assert [cell.state for cell in view.open] == ["in progress", "failed", "failed"]
    assert view.cells_failed == 2
    lock.release()
    writer.status("failed", "the server died")
    view = watch.look()
    assert view.state == f"failed: the server died; {NOBODY}"
    assert [cell.state for cell in view.open] == ["cut", "cut", "failed"]


CLAIM = """
import sys, time
from pathlib import Path
from bellman.folder_lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print("claimed", flush=True)
time.sleep(600)
"""


def test_a_killed_run_is_told_from_one_that_runs(writer: Writer) -> None:
    command = [sys.executable, "-c", CLAIM, str(writer.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={"PYTHONPATH": str(ROOT)}) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"claimed\n"
        writer.status("running")
        watch = RunWatch(writer.folder)
        assert watch.look().state.startswith(f"running; process {run.pid} on ")
        run.kill()
    view = watch.look()
    assert (view.state, view.holds) == (f"killed: it was running, but {NOBODY}", False)


def test_a_process_that_gave_the_folder_back_holds_it_no_more(tmp_path: Path) -> None:
    assert holder(tmp_path).holds is False
    lock = FolderLock(tmp_path)
    assert holder(tmp_path).holds is True
    lock.release()
    seen = holder(tmp_path)
    assert seen.process is not None
    assert (seen.process.process_id, seen.holds) == (os.getpid(), False)


def test_an_episode_that_is_made_again_is_counted_from_its_start(writer: Writer) -> None:
    writer.plan("EpisodeCell")
    folder = writer.cell(0, at_s=1000)
    writer.append(0, "timeline", sample(50.0))
    writer.append(0, "requests", *(ended(number, 2.0) for number in range(20)))
    watch = RunWatch(writer.folder)
    assert watch.look().open[0].ended == {"ok": 20}
    folder.rename(folder.with_name("k0.unfinished-1"))
    writer.cell(0, at_s=2000)
    writer.append(0, "requests", ended(0, 3.0))
    for _ in range(2):
        (cell,) = watch.look().open
    assert (cell.ended, cell.sample, cell.p50_s) == ({"ok": 1}, None, 3.0)


def test_warnings_stand_once_with_how_many_say_so(writer: Writer) -> None:
    writer.plan(*["EpisodeCell"] * 3)
    for number in range(3):
        writer.cell(number, at_s=0)
        said = {"warnings": ["hot"], "invalid_reasons": ["late"] if number == 1 else []}
        writer.done(number, at_s=1, kind="EpisodeCell", source="measured", **said)
    assert RunWatch(writer.folder).look().warnings == ["hot (3 episodes)", "late"]


def test_what_cannot_be_read_is_said_and_hides_nothing_else(writer: Writer) -> None:
    writer.plan("EpisodeCell", "EpisodeCell")
    (writer.folder / "status.json").write_text("{")
    writer.cell(0, at_s=0)
    writer.done(0, at_s=1, kind="EpisodeCell", energy=[1])
    folder = writer.cell(1, at_s=2)
    (folder / "begun.json").write_text("[]")
    writer.append(1, "timeline", b"\0\0\xff{\n", b"null\n", sample(3.0))
    writer.append(1, "requests", b'{"status": "ok"}\n', ended(0, 1.0))
    view = RunWatch(writer.folder).look()
    assert [("episode.json" in note, "status.json" in note) for note in view.notes] == [
        (True, False),
        (False, True),
    ]
    (cell,) = view.open
    assert (cell.ended, cell.notes) == ({"ok": 1}, ["3 lines cannot be read"])
    assert cell.sample is not None


def test_a_large_file_is_counted_a_bounded_piece_at_a_look(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "READ_BYTES", 2**16)
    writer.plan("EpisodeCell")
    writer.cell(0, at_s=0)
    lines = [ended(number, 1.0, chunk_gaps_s=[0.01] * 50) for number in range(1000)]
    writer.append(0, "requests", *lines)
    watch = RunWatch(writer.folder)
    looks = -(-sum(map(len, lines)) // 2**16)
    for look in range(1, looks + 1):
        (cell,) = watch.look().open
        assert cell.ended["ok"] * len(lines[0]) <= look * 2**16
        assert bool(cell.notes) == (look < looks)
    assert cell.ended["ok"] == 1000


def test_looking_leaves_the_folder_as_it_was(writer: Writer) -> None:
    writer.status("running")
    writer.plan("EpisodeCell")
    writer.cell(0, at_s=0)
    writer.append(0, "timeline", sample(1.0))

    def everything() -> dict[str, tuple[int, int]]:
        found = {str(path): path.stat() for path in [writer.folder, *writer.folder.rglob("*")]}
        return {name: (status.st_mtime_ns, status.st_size) for name, status in found.items()}

    before = everything()
    RunWatch(writer.folder).look()
    assert everything() == before
    lock = FolderLock(writer.folder)  # nobody stands in the way
    RunWatch(writer.folder).look()
    lock.release()
