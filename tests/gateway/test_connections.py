"""Connections that end early: the upstream's between two answers, a client's that does not read."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from bellman.engines.openai.connections import open_pool
from tests.engines.openai.test_stale_connections import ANSWER, Drop, close, reset
from tests.servers import gateway, raw_server

pytestmark = pytest.mark.slow
PATIENT = """
import bellman.engines.openai.connections as connections
connections.KEEP_ALIVE_S = 600.0
"""
SELDOM = ["--scrape-period-s", "600"]
"""A busy machine may take longer from one request to the next than idle connections are kept, and a
scrape may take the one that is idle."""
CHAT = "/v1/chat/completions"


class Upstream:
    """Answers one POST on a connection, and drops the connection at the next one."""

    def __init__(self, drop: Drop, before_drop: bytes = b"") -> None:
        self.drop = drop
        self.before_drop = before_drop
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            for answer in (ANSWER, self.before_drop):
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET"):  # a scrape
                    break
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))
                self.requests += 1
                writer.write(answer)
                await writer.drain()
            else:
                await asyncio.sleep(0.05 * bool(self.before_drop))
                return self.drop(writer)
        writer.close()


@contextlib.asynccontextmanager
async def asked(upstream: Upstream, path: str, times: int) -> AsyncIterator[tuple[list[int], str]]:
    """Send requests one after the other; give their statuses and the gateway's URL."""
    async with (
        raw_server(upstream.serve) as upstream_url,
        gateway(upstream_url, SELDOM, PATIENT) as url,
        open_pool(None) as pool,
    ):
        statuses = []
        for _ in range(times):
            async with pool.post(f"{url}{path}", json={}) as response:
                await response.read()
                statuses.append(response.status)
        yield statuses, url


async def resent(url: str) -> float:
    async with open_pool(None) as pool, pool.get(f"{url}/bellman/metrics") as response:
        lines = (await response.text()).splitlines()
    (line,) = (line for line in lines if line.startswith("bellman_requests_resent_total"))
    return float(line.split()[-1])


@pytest.mark.parametrize("drop", [close, reset])
async def test_a_stale_connection_of_the_upstream_costs_no_request(drop: Drop) -> None:
    upstream = Upstream(drop)
    async with asked(upstream, CHAT, 4) as (statuses, url):
        assert statuses == [200] * 4
        assert upstream.requests == 7  # the first on a fresh connection, the others twice
        assert await resent(url) == 3


async def test_what_may_have_had_an_effect_is_not_sent_again() -> None:
    """Part of an answer came, or nobody knows what the request does."""
    begun = Upstream(close, b"HTTP/1.1 200 OK\r\nContent-Le")
    async with asked(begun, CHAT, 2) as (statuses, url):
        assert (statuses, begun.requests) == ([200, 502], 2)
        assert await resent(url) == 0
    other = Upstream(close)
    async with asked(other, "/v1/files", 2) as (statuses, url):
        assert (statuses, other.requests) == ([200, 502], 2)


async def in_flight(url: str) -> int:
    async with open_pool(None) as pool, pool.get(f"{url}/bellman/congestion") as response:
        count: int = (await response.json())["in_flight"]
        return count


async def test_a_client_that_does_not_read_is_no_load_for_ever() -> None:
    async def long_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            if (await reader.readuntil(b"\r\n\r\n")).startswith(b"POST"):
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                for _ in range(64):
                    writer.write(b"x" * 2**20)
                    await writer.drain()
        writer.close()

    patch = "import bellman.gateway.proxy as proxy\nproxy.UNREAD_S = 0.5"
    request = f"POST {CHAT} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".encode()
    async with raw_server(long_answer) as upstream_url, gateway(upstream_url, patch=patch) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(request)
            async with asyncio.timeout(30):
                while await in_flight(url) == 0:
                    await asyncio.sleep(0.01)
                while await in_flight(url) > 0:
                    await asyncio.sleep(0.01)


async def ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    writer.close()


async def test_an_upstream_that_takes_no_connection_is_passed_over() -> None:
    """Its queue of connections is full: nobody answers who tries to connect."""
    patch = "import bellman.gateway.proxy as proxy\nproxy.CONNECT_S = 0.5"
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(full.getsockname())
        full_url = f"http://127.0.0.1:{full.getsockname()[1]}"
        async with (
            raw_server(ok) as other,
            gateway(full_url, ["--upstream", other], patch) as url,
            open_pool(None) as pool,
            pool.post(f"{url}{CHAT}", json={}) as response,
        ):
            assert (response.status, await response.text()) == (200, "ok")
