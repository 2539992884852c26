"""The folder of one run: its identity, its status, and who may write into it."""

import errno
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from bellman import folder_lock
from bellman.errors import RunError
from bellman.folder_lock import FolderLock, locks_are_local
from bellman.live_process import identity_in, is_alive, this_process
from bellman.records import write_json

STATUS = "status.json"
RUNNING, INTERRUPTED, FAILED = "running", "interrupted", "failed"
RECORDED, DONE = "recorded", "done"
"""Every record is there; and so is everything that is made from them."""
IDENTITY_LENGTH = 12
PARTIAL = ".partial"
"""End of a file's name until it is whole: a full disk may leave one."""


def run_id(config: dict[str, Any]) -> str:
    """Return the run's identity: a hash of its resolved configuration, without output paths.

    What else determines records (files, code) is part of each episode's key.
    """
    identity = json.dumps(config, sort_keys=True, default=str)
    return hashlib.sha256(identity.encode()).hexdigest()[:IDENTITY_LENGTH]


@dataclass(frozen=True)
class RunFolder:
    """A folder that this process may write into; `with` gives it back."""

    path: Path
    identity: str
    found: str | None = None
    """The status of this very run before it was claimed; None where it starts now."""
    lock: FolderLock | None = None

    def set_status(self, status: str, reason: str | None = None) -> None:
        """Write status.json: `running`, `interrupted`, `failed`, `recorded`, and last `done`."""
        write_json(
            {
                "status": status,
                "run_id": self.identity,
                "reason": reason,
                "process": asdict(this_process()),
                "locked": self.lock is not None and self.lock.has_kernel_lock,
                "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            },
            self.path / STATUS,
        )

    def release(self) -> None:
        """Let others write into the folder; releasing twice does nothing."""
        if self.lock is not None:
            self.lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def read_status(path: Path) -> dict[str, Any] | None:
    """Return a folder's status.json, or None when it has none; `RunError` when it is damaged."""
    file = path / STATUS
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(file, str(error) if file.stat().st_size else "it is empty") from None
    if not isinstance(content, dict) or not isinstance(content.get("status"), str):
        raise _damaged(file, "it says no status")
    return content


def reached(path: Path, identity: str) -> str | None:
    """Return the status of this very run in the folder, or None where it is not this run's."""
    status = read_status(path)
    if status is None or status.get("run_id") != identity:
        return None
    return str(status["status"])


def claim_folder(path: Path, identity: str) -> RunFolder:
    """Make the folder ours; of any number of processes that try at once one gets it.

    What is there stays: the run goes on where an earlier try ended. Raises `RunError` when the
    folder holds another run, another process writes into it, or nobody can.
    """
    place = path.resolve()  # of a link the folder that it names is the run's
    try:
        return _claim(place, identity)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        reason = error.strerror or str(error)
        raise RunError(
            f"{path} cannot be written ({reason}): choose another `folder` or `outputs`"
        ) from None


@contextmanager
def writing_into(path: Path) -> Iterator[None]:
    """Hold a run folder that exists while its records are worked on; raises `RunError`."""
    try:
        lock = FolderLock(path.resolve())
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from None
    try:
        status = read_status(path)
        if status is not None:
            refuse_if_alive(path, status, lock)
        yield
    finally:
        lock.release()


def refuse_if_alive(path: Path, status: dict[str, Any], lock: FolderLock) -> None:
    """Raise `RunError` unless the process that wrote a `running` status has ended.

    That the lock could be had proves it, if that process had one and this machine would see it.
    """
    if status["status"] != RUNNING or "process" not in status:
        return
    try:
        writer = identity_in(status["process"])
    except ValueError:
        raise _damaged(path / STATUS, "it does not say whose it is") from None
    same_machine = writer.boot_id == this_process().boot_id
    if (
        lock.has_kernel_lock
        and status.get("locked") is True
        and (same_machine or not locks_are_local(path))
    ):
        return
    alive = is_alive(writer)
    if alive:
        raise RunError(f"{path} is being written by {writer}: wait for it")
    if alive is None:
        raise RunError(
            f"{path} was being written by {writer}, which cannot be seen from here: wait for it, "
            f"or, if it has ended, remove {path / STATUS}"
        )


def _claim(place: Path, identity: str) -> RunFolder:
    while (lock := _lock(place)) is None:
        pass
    try:
        status = read_status(place)
        if status is not None and status.get("run_id") != identity:
            raise RunError(
                f"{place} holds run {status.get('run_id')}, this is run {identity}: "
                "choose another `folder`, or remove that one"
            )
        if status is not None:
            refuse_if_alive(place, status, lock)
        for leftover in [*place.glob(f"*{PARTIAL}"), *place.glob(f"*/*{PARTIAL}")]:
            leftover.unlink()
        found = None if status is None else str(status["status"])
        folder = RunFolder(place, identity, found, lock)
        if found != DONE:
            folder.set_status(RUNNING)
    except BaseException:
        lock.release()
        raise
    return folder


def _lock(place: Path) -> FolderLock | None:
    """Make and lock the folder; None where somebody moves or removes it meanwhile."""
    if place.exists() and not place.is_dir():
        raise RunError(f"{place} is no folder: choose another `folder`")
    if read_status(place) is None and _is_something_else(place):
        raise RunError(f"{place} is not empty and is no run folder: choose another `folder`")
    place.mkdir(parents=True, exist_ok=True)
    try:
        lock = FolderLock(place)
    except FileNotFoundError:
        return None
    if lock.is_in_place():
        return lock
    lock.release()
    return None


def _is_something_else(place: Path) -> bool:
    """Whether a folder without status.json holds anything, and was never a run's folder."""
    names = {entry.name for entry in place.iterdir()} if place.exists() else set()
    others = {name for name in names - folder_lock.FILES if not name.endswith(PARTIAL)}
    return bool(others) and folder_lock.LOCK not in names


def _damaged(file: Path, reason: str) -> RunError:
    return RunError(
        f"{file} cannot be read ({reason}): remove it, and the same command goes on with the "
        "records beside it"
    )
