"""What passes the gateway whole, and what is cut, refused or left out."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest
import pytest_asyncio

from bellman.engines.openai.connections import open_pool
from bellman.signal import HEADER
from tests.servers import exchange, gateway, raw_server


@dataclass
class Upstream:
    """Raw answers by path, and the requests that came, the scrapes aside."""

    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    seen: list[bytes] = field(default_factory=list)
    broken: int = 0
    """Connections that ended before their request was whole."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"\r\ncontent-length: *(\d+)", head.lower())
            body = await reader.readexactly(int(length[1])) if length else b""
        except asyncio.IncompleteReadError:
            self.broken += 1
            return
        if not head.startswith(b"GET /metrics "):
            self.seen.append(head + body)
        writer.write(self.answer)
        writer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers() -> AsyncIterator[tuple[str, Upstream]]:
    upstream = Upstream()
    async with raw_server(upstream.serve) as upstream_url, gateway(upstream_url) as url:
        yield url, upstream


@pytest.fixture
def upstream(servers: tuple[str, Upstream]) -> Upstream:
    """The upstream as at its start."""
    upstream = servers[1]
    upstream.answer, upstream.seen, upstream.broken = Upstream.answer, [], 0
    return upstream


@pytest.fixture
def url(servers: tuple[str, Upstream], upstream: Upstream) -> str:
    return servers[0]


pytestmark = pytest.mark.asyncio(loop_scope="module")


def request(*lines: str, body: bytes = b"", path: str = "/v1/chat/completions") -> bytes:
    head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: h", "Connection: close", *lines, "", ""])
    return head.encode() + body


async def test_requests_that_leave_open_where_they_end_go_nowhere(
    url: str, upstream: Upstream
) -> None:
    smuggled = b"0\r\n\r\nGET /admin HTTP/1.1\r\nHost: h\r\n\r\n"
    requests = [
        (("Content-Length: 47", "Transfer-Encoding: chunked"), smuggled),
        (("Transfer-Encoding: chunked", "Content-Length: 5"), smuggled),
        (("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), smuggled),
        (("Transfer-Encoding: gzip, chunked",), smuggled),
        (("Transfer-Encoding: xchunked",), smuggled),
        (("Transfer-Encoding : chunked",), smuggled),
        (("Content-Length: 5", "Content-Length: 6"), smuggled),
        (("Content-Length: +5",), smuggled),
        (("Content-Length: -1",), b""),
        (("Content-Length: 5_0",), b""),
        (("X: a\r\n Content-Length: 5", "X\x00Y: 1"), b""),
        (("X: a\x01b",), b""),
        (("X: a\x7f",), b""),
        (("Transfer-Encoding: chunked",), b"zz\r\nhello"),
        (("Transfer-Encoding: chunked",), b"-5\r\nhello\r\n0\r\n\r\n"),
    ]
    for path in ("/v1/chat/completions", "/v1/other"):
        sent = [request(*lines, body=body, path=path) for lines, body in requests]
        answers = await asyncio.gather(*(exchange(url, one) for one in sent))
        for one, answer in zip(sent, answers, strict=True):
            assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 501", b""), (one, answer)
    assert (upstream.seen, upstream.broken) == ([], 0)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/other"])
async def test_a_body_cut_short_is_not_forwarded(url: str, upstream: Upstream, path: str) -> None:
    for head, body in (
        ("Content-Length: 9", b"{}"),
        ("Transfer-Encoding: chunked", b"2\r\n{}"),
    ):
        assert await exchange(url, request(head, body=body, path=path), end=True) == b""
    assert (upstream.seen, upstream.broken) == ([], 0)
    whole = request("Transfer-Encoding: chunked", body=b"2\r\n{}\r\n0\r\n\r\n", path=path)
    assert (await exchange(url, whole)).endswith(b"ok")
    assert upstream.seen[0].endswith(b"\r\n\r\n{}")
    assert b"content-length: 2\r\n" in upstream.seen[0].lower()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello",
    ],
)
async def test_an_answer_cut_short_stays_cut(url: str, upstream: Upstream, answer: bytes) -> None:
    upstream.answer = answer
    async with open_pool(None) as pool:
        with pytest.raises(aiohttp.ClientPayloadError):
            async with pool.post(f"{url}/v1/chat/completions", json={}) as response:
                assert response.status == 200
                await response.read()
        async with pool.get(f"{url}/bellman/congestion") as response:
            assert (await response.json())["in_flight"] == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\x0bb\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\x7f\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200",
        b"",
    ],
)
async def test_an_answer_that_is_none_is_a_502(url: str, upstream: Upstream, answer: bytes) -> None:
    upstream.answer = answer
    async with (
        open_pool(None) as pool,
        pool.post(f"{url}/v1/chat/completions", json={}) as response,
    ):
        assert response.status == 502
        assert response.headers.getall(HEADER) == ["0.0000"]
        assert "\n" not in (await response.json())["error"]["message"]


async def test_a_failure_does_not_tell_what_a_query_holds(url: str, upstream: Upstream) -> None:
    upstream.answer = b"no HTTP\r\n\r\n"
    answer = await exchange(url, request(path="/v1/chat/completions?api_key=query-secret-0001"))
    assert answer.startswith(b"HTTP/1.1 502 ") and b"api_key=***" in answer
    assert b"query-secret-0001" not in answer


async def test_an_answer_with_a_long_header_comes_through(url: str, upstream: Upstream) -> None:
    upstream.answer = b"HTTP/1.1 200 OK\r\nX: %b\r\nContent-Length: 2\r\n\r\nok" % (b"a" * 12_000)
    answer = await exchange(url, request("Content-Length: 2", body=b"{}"))
    assert answer.startswith(b"HTTP/1.1 200 ") and b"a" * 12_000 in answer


async def test_redirects_are_the_clients_to_follow(url: str, upstream: Upstream) -> None:
    other = Upstream()
    async with raw_server(other.serve) as other_url:
        upstream.answer = f"HTTP/1.1 307 Go\r\nLocation: {other_url}/x\r\n\r\n".encode()
        answer = await exchange(url, request("Content-Length: 2", body=b"{}"))
        assert answer.startswith(b"HTTP/1.1 307 ") and f"{other_url}/x".encode() in answer
        assert other.seen == []


async def test_headers_of_one_connection_end_here(url: str, upstream: Upstream) -> None:
    head = "\r\n".join(
        (
            *("GET /a HTTP/1.1", "Host: h", "Connection: close, X-Named", "Connection: upgrade"),
            *("X-Named: 1", "TE: trailers", "Trailer: x", "Upgrade: websocket", "Keep-Alive: 1"),
            *("Proxy-Authorization: Basic x", "Proxy-Connection: close", "Authorization: Bearer t"),
            *("Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==", "Sec-WebSocket-Version: 13"),
            *("X-Forwarded-For: 6.6.6.6", "X-Own: caf\u00e9", "", ""),
        )
    ).encode()
    upstream.answer = (
        b"HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 9\r\nUpgrade: h2c\r\n"
        b"Proxy-Authenticate: x\r\nTrailer: x\r\n"
        b"X-Own: caf\xc3\xa9\r\nContent-Length: 2\r\n\r\nok"
    )
    answer = (await exchange(url, head)).lower()
    seen = upstream.seen[0].lower()
    for name in ("x-named", "te", "trailer", "upgrade", "keep-alive", "proxy-", "connection"):
        assert f"\r\n{name}".encode() not in seen
    assert b"\r\nauthorization: bearer t\r\n" in seen
    assert b"\r\nx-own: caf\xc3\xa9\r\n" in seen
    assert answer.startswith(b"http/1.1 200 ") and b"\r\nx-own: caf\xc3\xa9\r\n" in answer
    for name in ("x-hop", "keep-alive", "upgrade", "proxy-", "trailer"):
        assert f"\r\n{name}".encode() not in answer


LEVELS = "\r\n".join(f"{name}: 0.9" for name in (HEADER, HEADER.upper(), HEADER.title()))


async def test_nobody_elses_level_comes_through(url: str, upstream: Upstream) -> None:
    answer = f"HTTP/1.1 200 OK\r\n{LEVELS}\r\nContent-Length: 2\r\n\r\nok".encode()
    upstream.answer = answer
    async with gateway(url) as outer, open_pool(None) as pool:
        for at in (url, outer):
            async with pool.get(f"{at}/x", headers={HEADER: "0.7"}) as response:
                assert response.headers.getall(HEADER) == ["0.0000"]


async def test_nobody_elses_level_stands_in_for_a_missing_one() -> None:
    upstream = Upstream(f"HTTP/1.1 200 OK\r\n{LEVELS}\r\nContent-Length: 2\r\n\r\nok".encode())
    async with (
        raw_server(upstream.serve) as upstream_url,
        gateway(upstream_url, ["--shared"]) as url,  # and the upstream has no metrics
        open_pool(None) as pool,
        pool.get(f"{url}/x") as response,
    ):
        assert response.status == 200 and HEADER not in response.headers


async def test_a_client_does_not_choose_its_address(url: str) -> None:
    """Only this machine may switch the control, whatever X-Forwarded-For says."""
    async with open_pool(None) as pool:
        for headers, status in (({}, 200), ({"X-Forwarded-For": "192.0.2.1"}, 200)):
            async with pool.put(f"{url}/bellman/control", json={}, headers=headers) as response:
                assert response.status == status
