"""What a request line may name: a path at the upstream, and never another host."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from bellman.signal import HEADER
from tests.servers import exchange, gateway, raw_server

Seen = list[bytes]


def recorder(seen: Seen) -> Any:
    """Answer every request; keep the head of all but the scrapes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"GET /metrics"):
            seen.append(head)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        writer.close()

    return answer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers() -> AsyncIterator[tuple[str, Seen, str, Seen]]:
    """Return the gateway's URL and what its upstream saw, another server's URL and what it saw."""
    upstream: Seen = []
    other: Seen = []
    async with (
        raw_server(recorder(upstream)) as upstream_server,
        raw_server(recorder(other)) as other_url,
        gateway(upstream_server) as url,
    ):
        yield url, upstream, other_url.removeprefix("http://"), other


pytestmark = pytest.mark.asyncio(loop_scope="module")
Servers = tuple[str, Seen, str, Seen]


async def ask(servers: Servers, target: str, method: str = "GET", host: str = "h") -> bytes:
    line = f"{method} {target.replace('OTHER', servers[2])} HTTP/1.1\r\nHost: {host}\r\n"
    return await exchange(servers[0], line.encode() + b"Connection: close\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "@OTHER/x", 400),
        ("GET", "x@OTHER/x", 400),
        ("GET", ":80/x", 400),
        ("GET", ".OTHER/x", 400),
        ("GET", "x", 400),
        ("GET", "?a=b", 400),
        ("GET", "*", 400),
        ("POST", "*", 400),
        ("GET", "\\\\OTHER/x", 400),
        ("GET", "/\\OTHER/x", 400),
        ("GET", "/a\\..\\b", 400),
        ("GET", "/a#b", 400),
        ("GET", "/a/../b", 400),
        ("GET", "/..", 400),
        ("GET", "/a/%2e%2E/b", 400),
        ("GET", "/a%2f..%2fb", 400),
        ("GET", "/a%5c..%5cb", 400),
        ("GET", "/./a", 400),
        ("GET", "http:OTHER/x", 400),
        ("GET", "ftp://OTHER/x", 400),
        ("GET", "http://OTHER/x", 421),
        ("GET", "HTTP://OTHER", 421),
        ("GET", "https://u:p@OTHER/x", 421),
        ("POST", "http://OTHER/v1/chat/completions", 421),
        ("CONNECT", "OTHER", 405),
        ("CONNECT", "/x", 405),
        ("GET", "OTHER", 400),
    ],
)
async def test_what_is_no_path_is_refused(
    servers: Servers, method: str, target: str, status: int
) -> None:
    _, upstream, _, other = servers
    upstream.clear()
    answer = await ask(servers, target, method)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.lower().count(HEADER.encode() + b": 0.0000\r\n") == 1
    assert (upstream, other) == ([], [])
    assert b"\nok" not in answer


@pytest.mark.parametrize(
    "target",
    [
        *("/", "//OTHER/x", "///", "/@OTHER/x", "/:80", "/http://OTHER/x", "/a%0d%0aHost:%20b"),
        *(
            "/a%20b?c=%2F..&d=http://OTHER/../x",
            "/v1/models?a[]=%7B|",
            "/...",
            "/a..b",
            "/%zz",
            "/a//b",
        ),
        "/%2541?%2541",
    ],
)
async def test_paths_go_to_the_upstream_as_they_are(servers: Servers, target: str) -> None:
    _, upstream, other_url, other = servers
    upstream.clear()
    answer = await ask(servers, target)
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"ok")
    expected = f"GET {target.replace('OTHER', other_url)} HTTP/1.1\r\n".encode()
    assert [head[: len(expected)] for head in upstream] == [expected]
    assert other == []


async def test_the_absolute_form_of_our_own_address_is_a_path(servers: Servers) -> None:
    url, upstream, _, other = servers
    upstream.clear()
    host = url.removeprefix("http://")
    answer = await ask(servers, f"{url}/a%20b?c", host=host)
    assert answer.endswith(b"ok") and upstream[0].startswith(b"GET /a%20b?c HTTP/1.1\r\n")
    assert b'"level"' in await ask(servers, f"{url}/bellman/congestion", host=host)
    assert (await ask(servers, f"{url}/a/../b", host=host)).startswith(b"HTTP/1.1 400 ")
    assert len(upstream) == 1 and other == []


async def test_options_of_the_server_itself(servers: Servers) -> None:
    answer = await ask(servers, "*", "OPTIONS")
    assert answer.startswith(b"HTTP/1.1 204 ")
    assert b"allow: GET, HEAD, POST" in answer
