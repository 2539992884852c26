"""Which process wrote something, and whether that very process still runs."""

import os
import socket
from dataclasses import dataclass, fields
from pathlib import Path

import psutil

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE = Path("/proc/self/ns/pid")
START_FIELD = 22
"""Of /proc/<pid>/stat, counted from 1: clock ticks from boot to the process's start (proc(5))."""


@dataclass(frozen=True)
class ProcessIdentity:
    """Names one process for good: process ids are used again, clocks are set, machines boot."""

    host: str
    boot_id: str | None
    """None where the system has none (it is Linux's)."""
    pid_namespace: str | None
    process_id: int
    start_ticks: int | None

    def __str__(self) -> str:
        return f"process {self.process_id} on {self.host}"


def identity_in(value: object) -> ProcessIdentity:
    """Return the identity that a file's JSON value is; raises ValueError for anything else."""
    names = {field.name for field in fields(ProcessIdentity)}
    if not isinstance(value, dict) or value.keys() != names:
        raise ValueError("no identity of a process")
    identity = ProcessIdentity(**value)
    texts = (identity.host, identity.boot_id or "", identity.pid_namespace or "")
    numbers = (identity.process_id, identity.start_ticks or 0)
    kinds = all(type(text) is str for text in texts) and all(type(n) is int for n in numbers)
    if not kinds or not 0 < identity.process_id < 2**31:
        raise ValueError("no identity of a process")
    return identity


def this_process() -> ProcessIdentity:
    """Return the identity of the running process."""
    process_id = os.getpid()
    return ProcessIdentity(
        socket.gethostname(), _boot_id(), _pid_namespace(), process_id, _start_ticks(process_id)
    )


def is_alive(process: ProcessIdentity) -> bool | None:
    """Say whether the process still runs; None where that cannot be seen from here.

    Not to be seen are other machines, and other PID namespaces (containers) of this one.
    """
    here = this_process()
    if process.boot_id != here.boot_id:
        return False if process.host == here.host else None
    if process.pid_namespace != here.pid_namespace:
        return None
    if process.boot_id is None and process.host != here.host:
        return None
    if process.start_ticks is None:
        return psutil.pid_exists(process.process_id)
    return _start_ticks(process.process_id) == process.start_ticks


def _boot_id() -> str | None:
    try:
        return BOOT_ID.read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _pid_namespace() -> str | None:
    try:
        return str(PID_NAMESPACE.readlink())
    except OSError:
        return None


def _start_ticks(process_id: int) -> int | None:
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field, the program's name in parentheses, may hold spaces and parentheses.
    state, *others = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(others[START_FIELD - 4])
