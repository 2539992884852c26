"""Runs a command so that nothing of it outlives the run: `python -m ...supervise command...`.

A server starts processes of its own, and the run that wanted it may be killed without a chance to
clean up. This small process stands between the two (Linux): it starts the command, waits until the
command ends or its own standard input closes (which it does however the run ends), and then ends
every process that came of the command. Its exit status is the command's, 128 + n for signal n.
What they write passes through it, so that no log has a secret of the environment or the command
line.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from io import FileIO, TextIOWrapper
from threading import Thread
from types import FrameType
from typing import IO

import psutil

from bellman.redact import conceal, learn_command

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 8.0
"""The command gets so long after SIGTERM to end, and to end what it started, before SIGKILL."""
ORPHANS_GRACE_S = 1.0
"""What it left behind gets so long to notice."""
POLL_S = 0.02
LAST_WORDS_S = 5.0
"""What was written is passed on for so long after all have ended."""

libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Run the command of the command line; return its exit status."""
    # Orphans of the command come to this process, so that it finds them all.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, _end)
    command = subprocess.Popen(
        sys.argv[1:],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=_die_with_me,  # noqa: PLW1509 - this process has one thread
    )
    assert command.stdout is not None
    learn_command(sys.argv[1:])
    output = Thread(target=pass_on, args=(command.stdout,), daemon=True)
    output.start()
    try:
        _wait_for_end(command.pid)
    finally:
        end_descendants()
        output.join(LAST_WORDS_S)
    status = command.wait()
    return status if status >= 0 else 128 - status


def pass_on(source: IO[bytes]) -> None:
    """Write lines as they come, without secrets; bytes that are no text stay."""
    # Not buffered: what a full disk does not take must neither stay nor change the exit status.
    target = FileIO(1, "w", closefd=False)
    # newline="": a progress bar's line ends with a carriage return.
    for line in TextIOWrapper(source, "utf-8", "surrogateescape", newline=""):
        with suppress(OSError):  # the command must not wait for its log
            target.write(conceal(line).encode("utf-8", "surrogateescape"))


def end_descendants() -> None:
    """End every process that came of this one: its child first and gently."""
    me = psutil.Process()
    for child in me.children():
        _send(child, signal.SIGTERM)
        _wait_until_ended([child], GRACE_S)
    _wait_until_ended(me.children(recursive=True), ORPHANS_GRACE_S)
    while left := [process for process in me.children(recursive=True) if _runs(process)]:
        for process in left:
            _send(process, signal.SIGKILL)
        _wait_until_ended(left, POLL_S)


def _wait_until_ended(processes: list[psutil.Process], longest_s: float) -> None:
    deadline_s = time.monotonic() + longest_s
    while any(map(_runs, processes)) and time.monotonic() < deadline_s:
        time.sleep(POLL_S)


def _wait_for_end(process_id: int) -> None:
    """Wait until the process has ended or the standard input is closed."""
    watch = select.poll()
    process = os.pidfd_open(process_id)
    watch.register(process, select.POLLIN)
    watch.register(0, select.POLLIN | select.POLLHUP)
    while True:
        for descriptor, _ in watch.poll():
            if descriptor == process or not os.read(0, 1024):
                return


def _die_with_me() -> None:
    """Let the kernel kill the command's first process should this one be killed."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(128 + signal.SIGTERM)


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _send(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


if __name__ == "__main__":
    sys.exit(main())
