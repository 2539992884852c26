"""A server as a supervised child process: started, healthy, asked why it is gone, ended."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import aiohttp

from bellman.errors import RunError

HEALTH_PERIOD_S = 0.5
HEALTH_TIMEOUT_S = 10.0
LAST_WORDS_S = 15.0
"""A server that fails its health check gets so long to end by itself, and so say why."""
STOP_S = 15.0
"""The supervisor gets so long to end everything: longer than its own grace period."""
TAIL_LINES = 12


class ServerProcess:
    """One server, `python` with its arguments, and everything that it starts.

    `async with` starts it and ends it; its output goes to the log file.
    """

    def __init__(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> None:
        self._name = name
        self._arguments = arguments
        self._environment = environment
        self.log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def process_id(self) -> int:
        """The supervisor's process id, which is the process group of all."""
        assert self._process is not None, "not started"
        return self._process.pid

    async def start(self) -> None:
        """Start it; raises `RunError` when it cannot be."""
        supervise = ("-m", "bellman.supervise", sys.executable)
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *supervise,
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._environment},
                start_new_session=True,  # a Ctrl-C is ours to handle, in order
            )

    async def wait_until_healthy(
        self, pool: aiohttp.ClientSession, url: str, deadline_s: float
    ) -> None:
        """Wait for GET /health; raises `RunError` with the log's tail when that does not come."""
        try:
            async with asyncio.timeout(deadline_s):
                while not await is_healthy(pool, url):
                    if self._exit_status is not None:
                        raise RunError(self._with_tail(f"{self._name} did not start: {self._end}"))
                    await asyncio.sleep(HEALTH_PERIOD_S)
        except TimeoutError:
            problem = f"{self._name} was not healthy after {deadline_s:g} s"
            remedy = "raise engine.start_deadline_s if it was still loading"
            raise RunError(self._with_tail(f"{problem}: {remedy}")) from None

    async def why_gone(self, pool: aiohttp.ClientSession, url: str) -> str | None:
        """Return why the server is gone, in one line, or None when it is healthy."""
        if self._exit_status is None and await is_healthy(pool, url):
            return None
        assert self._process is not None
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), LAST_WORDS_S)
        if self._exit_status is None and await is_healthy(pool, url):
            return None
        return f"{self._name} is gone: {self._end}; its log is {self.log}"

    async def stop(self) -> None:
        """End the server and everything that it started; stopping twice does nothing."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            pass
        finally:
            # Of a supervisor that did its work nothing is left; otherwise this is the last resort.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    @property
    def _exit_status(self) -> int | None:
        assert self._process is not None, "not started"
        return self._process.returncode

    @property
    def _end(self) -> str:
        status = self._exit_status
        if status is None:
            return "it fails its health check"
        killed_by = -status if status < 0 else status - 128
        if killed_by in set(signal.Signals):
            return f"killed by {signal.Signals(killed_by).name}"
        return f"it ended with exit status {status}"

    def _with_tail(self, problem: str) -> str:
        lines = tail(self.log, TAIL_LINES)
        first = f"{problem}; its log is {self.log}" + (", and ends:" if lines else "")
        return "\n".join([first, *lines])


async def is_healthy(pool: aiohttp.ClientSession, url: str) -> bool:
    """Tell whether GET /health answers 200."""
    try:
        async with asyncio.timeout(HEALTH_TIMEOUT_S), pool.get(f"{url}/health") as response:
            return response.status == 200
    except (aiohttp.ClientError, OSError):
        return False


def free_port(port: int | None) -> int:
    """Return `port`, or any free one for None; raises `RunError` where it is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port or 0))
        except OSError as error:
            remedy = "end what uses it, or engine.port=null for any free one"
            raise RunError(f"engine.port={port}: {error.strerror}; {remedy}") from None
        return int(probe.getsockname()[1])


def tail(log: Path, lines: int) -> list[str]:
    """Return the last lines of a log that say something, indented."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return [f"  {line.rstrip()}" for line in text.splitlines() if line.strip()][-lines:]
