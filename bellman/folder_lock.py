"""A lock on a folder, held as long as its process lives: the kernel takes it back, however it ends.

The lock is `flock` on a file in the folder, which works across containers, and across machines
where the file system carries it. Where a file system has no locks, a file that only one process can
create stands for one; it says who that was, and goes to the next when that process has ended.
"""

import errno
import fcntl
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from bellman.errors import RunError
from bellman.live_process import ProcessIdentity, identity_in, is_alive, this_process

LOCK = "claim.lock"
EXCLUSIVE = "claim.exclusive"
"""Stands for the lock where a file system has none: who creates it has it."""
TAKEOVER = "claim.takeover"
"""Whoever creates it, and nobody else, may take `EXCLUSIVE` over from a process that has ended."""
FILES = {LOCK, EXCLUSIVE, TAKEOVER}
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTSUP}
LOCAL_OPTIONS = {"nolock", "local_lock=flock", "local_lock=all", "localflock"}
"""Mount options (nfs(5), Lustre) by which a lock is not seen by other machines."""

KERNEL_LOCKS = Path("/proc/locks")
"""Every lock of this machine (proc(5)): type, mode, process and device:inode, a line each."""

held: "set[FolderLock]" = set()


class FolderLocked(RunError):
    """Another process has the folder."""


class FolderLock:
    """A lock that this process holds on a folder, until `release` or its end.

    Programs that it starts do not inherit it: Python opens files close-on-exec, and a forked child
    closes its copy, so that no child keeps a dead run's lock.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock; raises `FolderLocked` at once where another has it, OSError on failure."""
        self.folder = folder
        self.has_kernel_lock = True
        """False where the file system has no locks."""
        self._descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._lock()
        except BaseException:
            os.close(self._descriptor)
            raise
        held.add(self)

    def is_in_place(self) -> bool:
        """Say whether the folder still is where it was locked: nobody moved or removed it."""
        try:
            there = (self.folder / LOCK).stat()
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._descriptor))

    def release(self) -> None:
        """Give the folder back; releasing twice does nothing."""
        if self not in held:
            return
        if not self.has_kernel_lock and _named_in(self.folder / EXCLUSIVE) == this_process():
            (self.folder / EXCLUSIVE).unlink(missing_ok=True)
        self.close_copy()
        held.discard(self)

    def close_copy(self) -> None:
        """Close this process's descriptor; the lock stays while another has one."""
        os.close(self._descriptor)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = _named_in(self.folder / LOCK) or "another process"
            raise FolderLocked(f"{self.folder} is being written by {who}: wait for it") from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            self.has_kernel_lock = False
            try:
                _create(self.folder / EXCLUSIVE)
            except FileExistsError:
                _take_over(self.folder)
        with suppress(OSError):  # who has it is for messages alone: a full disk may forget it
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, _ourselves(), 0)


@dataclass(frozen=True)
class Holder:
    """Who has a folder, or had it last."""

    process: ProcessIdentity | None
    """None where nobody left a name."""
    holds: bool | None
    """None where that cannot be seen from here: another machine, another container."""


def holder(folder: Path) -> Holder:
    """Look who has a folder, without taking a lock or writing anything."""
    try:
        status = (folder / LOCK).stat()
    except OSError:
        return Holder(None, False)
    locks = _kernel_locks()
    exclusive = _named_in(folder / EXCLUSIVE)
    process = exclusive or _named_in(folder / LOCK)
    alive = None if process is None else is_alive(process)
    if process is not None and alive and exclusive is None and locks is not None:
        # It may live on without the folder. By the inode alone: on layered file systems the
        # device is another one there than in `stat`.
        inode, its_own = f":{status.st_ino}", str(process.process_id)
        holds = any(who == its_own and file.endswith(inode) for who, file in locks)
        return Holder(process, holds)
    if alive is None:  # of a container that this machine sees into, the lock is there all the same
        device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
        alive = any(file == f"{device}:{status.st_ino}" for _, file in locks or ()) or None
    return Holder(process, alive)


def _kernel_locks() -> list[tuple[str, str]] | None:
    """Return process and file of every `flock` on this machine; None where it does not say."""
    try:
        lines = KERNEL_LOCKS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    locks = [line.split() for line in lines if " FLOCK " in line and "->" not in line]
    return [(fields[4], fields[5]) for fields in locks]


def _create(file: Path) -> None:
    """Create a file that says who we are; raises FileExistsError where there is one."""
    with file.open("xb") as opened:
        try:
            opened.write(_ourselves())
            opened.flush()
        except OSError:  # a full disk must not leave a claim of nobody
            file.unlink()
            raise


def _take_over(folder: Path) -> None:
    """Make the exclusive file ours where its owner has ended; raises `FolderLocked`."""
    exclusive, takeover = folder / EXCLUSIVE, folder / TAKEOVER
    try:
        _create(takeover)
    except FileExistsError:
        raise FolderLocked(
            f"{folder} is being claimed by another process: if there is none, remove {takeover}"
        ) from None
    owner = _named_in(exclusive)
    if owner is not None and is_alive(owner) is False:
        takeover.replace(exclusive)
        return
    takeover.unlink(missing_ok=True)
    raise FolderLocked(
        f"{folder} is claimed by {owner or 'another process'}, and its file system has no locks: "
        f"wait for it, or, if it has ended, remove {exclusive}"
    )


def _ourselves() -> bytes:
    return json.dumps(asdict(this_process())).encode()


def _named_in(file: Path) -> ProcessIdentity | None:
    try:
        return identity_in(json.loads(file.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return None


def locks_are_local(folder: Path) -> bool:
    """Say whether other machines that share the folder do not see its locks."""
    mounts = [
        mount
        for mount in psutil.disk_partitions(all=True)
        if folder.is_relative_to(mount.mountpoint)
    ]
    mount = max(mounts, key=lambda mount: len(mount.mountpoint), default=None)
    return mount is not None and not LOCAL_OPTIONS.isdisjoint(mount.opts.split(","))


def _close_copies() -> None:
    for lock in held:
        lock.close_copy()
    held.clear()


os.register_at_fork(after_in_child=_close_copies)
