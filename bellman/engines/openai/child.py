"""Small servers of ours as child processes: they print their URL first."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from bellman.errors import RunError

START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 5.0


@asynccontextmanager
async def child_server(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    """Run Python with `arguments`; yield the URL that the server prints as its first line.

    It ends with this context. Its standard input is a pipe, which closes however this process
    ends. Raises `RunError` when no URL comes.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )
    try:
        yield await _url(process, " ".join(arguments))
    finally:
        await _stop(process)


async def _url(process: asyncio.subprocess.Process, command: str) -> str:
    assert process.stdout is not None
    with suppress(TimeoutError):
        async with asyncio.timeout(START_DEADLINE_S):
            line = (await process.stdout.readline()).decode().strip()
            if line.startswith("http"):
                return line
    raise RunError(f"no server from `python {command}`; run it by hand to see why")


async def _stop(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(STOP_DEADLINE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
