"""Server processes for tests: the configurable mock, and servers of raw bytes."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from bellman.engines.base import Request
from bellman.engines.openai.child import child_server
from bellman.engines.openai.session import ChatServer, Died, OpenAISession, not_watched

ROOT = Path(__file__).parents[1]
MOCK = str(ROOT / "benchmarks" / "mock_openai_server.py")
MIDDLEWARE = "bellman.serving.middleware.CongestionMiddleware"


@dataclass
class Mock:
    """A running mock server and the pool to reach it."""

    pool: aiohttp.ClientSession
    url: str

    async def behave(self, **behaviour: Any) -> None:
        async with self.pool.put(f"{self.url}/mock", json=behaviour) as response:
            assert response.status == 200

    async def counts(self) -> dict[str, int]:
        async with self.pool.get(f"{self.url}/mock") as response:
            counts: dict[str, int] = await response.json()
            return counts

    def session(self, timeout_s: float = 120.0, died: Died = not_watched) -> OpenAISession:
        server = ChatServer(self.url, "mock", timeout_s, {"temperature": 0.0})
        return OpenAISession(self.pool, server, died)


def a_request(forced_output_tokens: int | None = None) -> Request:
    return Request(1, "d1", "Summarize.", 50, 100, forced_output_tokens=forced_output_tokens)


def ignore(values: Sequence[str]) -> None:
    """Take no notice of a response's headers."""


Reply = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(reply: Reply) -> AsyncIterator[str]:
    """Serve raw bytes, for answers that no HTTP library would send."""
    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"


async def run_experiment(*overrides: str) -> None:
    """Run `python run.py` as a user does; its output is shown where it fails."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "run.py", *overrides),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-3000:]


GATEWAY_ENVIRONMENT = {
    "BELLMAN_CONTROL_ALLOWED": "1",
    "BELLMAN_CONTROL": json.dumps({"period_s": 0.02}),
}


@asynccontextmanager
async def gateway(
    upstream_url: str, arguments: Sequence[str] = (), patch: str = ""
) -> AsyncIterator[str]:
    """Run the gateway as a process; `patch` is Python that runs in it first (shorter deadlines)."""
    start = ("-c", f"{patch}\nfrom bellman.gateway.__main__ import main\nmain()")
    command = (*(start if patch else ("-m", "bellman.gateway")), "--upstream", upstream_url)
    async with child_server(
        [*command, "--port", "0", "--scrape-period-s", "0.05", *arguments], GATEWAY_ENVIRONMENT
    ) as url:
        yield url


async def exchange(url: str, request: bytes, *, end: bool = False) -> bytes:
    """Send bytes and return all that comes back until the server closes; `end` closes our half."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        if end:
            writer.write_eof()
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def outstanding(mock: Mock) -> int:
    observation = (await mock.session().state()).observation
    assert observation is not None
    return observation.outstanding
