"""A request counts from the end of its upload to the end of its answer, whatever breaks between."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from tests.servers import (
    GATEWAY_ENVIRONMENT,
    MIDDLEWARE,
    MOCK,
    ROOT,
    Mock,
    exchange,
    gateway,
)

pytestmark = pytest.mark.slow
LAW = {"_target_": "bellman.controllers.bellman.QueueLaw", "q_low": 0, "q_high": 4, "max_step": 1}
CONTROL = {"controller": LAW, "period_s": 0.02}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
SHORT = """
import bellman.gateway.protocol
import bellman.serving.refusal
import bellman.serving.upload
bellman.gateway.protocol.HEAD_DEADLINE_S = 1.0
bellman.serving.refusal.LINGER_S = 0.3
bellman.serving.upload.DEADLINE_S = 1.0
bellman.serving.upload.LONGEST_BYTES = 100_000
"""
DOORS = ["middleware", "gateway"]


@asynccontextmanager
async def door(kind: str, patch: str) -> AsyncIterator[str]:
    """Run the mock server behind the gateway, or with the middleware inside."""
    if kind == "gateway":
        async with child_server([MOCK]) as upstream, gateway(upstream, patch=patch) as url:
            yield url
    else:
        start = f"{patch}\nimport runpy\nrunpy.run_path({MOCK!r}, run_name='__main__')"
        environment = {**GATEWAY_ENVIRONMENT, "PYTHONPATH": str(ROOT)}
        async with child_server(["-c", start, "--middleware", MIDDLEWARE], environment) as url:
            yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def urls() -> AsyncIterator[dict[tuple[str, str], str]]:
    """Run every kind of door with its own limits and with short ones."""
    async with AsyncExitStack() as stack:
        yield {
            (kind, limits): await stack.enter_async_context(door(kind, patch))
            for kind in DOORS
            for limits, patch in (("own", ""), ("short", SHORT))
        }


@pytest.fixture(params=DOORS)
async def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def mock(urls: dict[tuple[str, str], str], kind: str) -> AsyncIterator[Mock]:
    async with open_pool(None) as pool:
        mock = Mock(pool, urls[kind, "own"])
        await mock.behave()
        yield mock


@pytest.fixture
async def short(urls: dict[tuple[str, str], str], kind: str) -> AsyncIterator[Mock]:
    """The same with short deadlines and a small limit of bodies."""
    async with open_pool(None) as pool:
        yield Mock(pool, urls[kind, "short"])


@pytest.fixture
async def short_gateway(urls: dict[tuple[str, str], str]) -> AsyncIterator[Mock]:
    async with open_pool(None) as pool:
        yield Mock(pool, urls["gateway", "short"])


async def state(mock: Mock) -> dict[str, Any]:
    async with mock.pool.get(f"{mock.url}/bellman/congestion") as response:
        value: dict[str, Any] = await response.json()
        return value


async def wait_for(mock: Mock, in_flight: int) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (now := await state(mock))["in_flight"] != in_flight:
            await asyncio.sleep(0.01)
    return now


async def connect(mock: Mock) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = mock.url.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


async def use(mock: Mock) -> None:
    async with mock.pool.put(f"{mock.url}/bellman/control", json=CONTROL) as response:
        assert response.status == 200


async def test_unfinished_uploads_are_no_congestion(mock: Mock) -> None:
    await use(mock)
    writers = []
    for _ in range(60):
        _, writer = await connect(mock)
        writer.write(HEAD + b"Content-Length: 1000\r\n\r\n{")
        writers.append(writer)
    for _ in range(10):
        await asyncio.sleep(0.02)
        now = await state(mock)
        assert (now["in_flight"], now["level"]) == (0, 0.0)
    assert (await mock.counts())["requests"] == 0
    for writer in writers:
        writer.close()
    assert (await state(mock))["in_flight"] == 0


async def test_a_thousand_aborted_uploads_leave_nothing(mock: Mock) -> None:
    await use(mock)

    async def abort(number: int) -> None:
        _, writer = await connect(mock)
        body = (
            b"Content-Length: 1000\r\n\r\n" if number % 2 else b"Transfer-Encoding: chunked\r\n\r\n"
        )
        part = (HEAD + body + (b"{" if number % 2 else b"5\r\n{"))[: 20 + number]
        writer.write(part)
        await writer.drain()
        if number % 3 == 0:
            writer.transport.abort()
        writer.close()

    for start in range(0, 1000, 100):
        await asyncio.gather(*(abort(number) for number in range(start, start + 100)))
    now = await wait_for(mock, 0)
    assert now["level"] == 0.0
    assert (await mock.counts())["requests"] == 0
    body = {"messages": [], "stream": True}
    async with mock.pool.post(f"{mock.url}/v1/chat/completions", json=body) as response:
        assert response.status == 200  # and it still serves
    await wait_for(mock, 0)


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("kind", ["gateway"], indirect=True)  # the mock itself ignores it
async def test_clients_that_leave_an_upstream_that_never_answers(mock: Mock, end: bool) -> None:
    await use(mock)
    await mock.behave(never_answers=True)
    writers = []
    for _ in range(4):
        _, writer = await connect(mock)
        writer.write(HEAD + b"Content-Length: 2\r\n\r\n{}")
        writers.append(writer)
    await wait_for(mock, 4)
    async with asyncio.timeout(60):
        while (await state(mock))["level"] != 1.0:
            await asyncio.sleep(0.02)
    for writer in writers:
        if end:
            writer.close()
        else:
            writer.transport.abort()
    await wait_for(mock, 0)


async def test_a_body_in_pieces_arrives_whole(mock: Mock) -> None:
    reader, writer = await connect(mock)
    body = json.dumps({"messages": [], "pad": "x" * 70_000}).encode()
    writer.write(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
    for start in range(0, len(body), 9_000):
        writer.write(body[start : start + 9_000])
        await writer.drain()
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200 ") and b"One two three." in answer


async def test_uploads_end(short: Mock) -> None:
    """All at once: each waits for its own deadline."""
    ends = {
        b"Content-Length: 100001\r\n\r\n": 413,
        b"Content-Length: 999999999999999\r\n\r\n{": 413,
        b"Transfer-Encoding: chunked\r\n\r\n30d40\r\n" + b"x" * 200_000 + b"\r\n": 413,
        b"Content-Length: 5\r\n\r\n{": 408,
        b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n": 408,
        b"Transfer-Encoding: chunked\r\n\r\n": 408,
    }
    await use(short)
    answers = await asyncio.gather(*(exchange(short.url, HEAD + sent) for sent in ends))
    for (sent, status), answer in zip(ends.items(), answers, strict=True):
        assert answer.startswith(b"HTTP/1.1 %d " % status), sent[:80]
        assert b"x-bellman-congestion: 0.0000\r\n" in answer, sent[:80]
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == status
    assert (await state(short))["in_flight"] == 0


async def test_other_uploads_through_the_gateway_end_too(short_gateway: Mock) -> None:
    head = b"PUT /mock HTTP/1.1\r\nHost: h\r\n"
    answer = await exchange(short_gateway.url, head + b"Content-Length: 5\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    answer = await exchange(short_gateway.url, head + b"Content-Length: 100001\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_a_sender_that_reads_only_at_the_end_reads_why(short_gateway: Mock) -> None:
    reader, writer = await connect(short_gateway)
    writer.write(HEAD + b"Content-Length: 2000000\r\n\r\n" + b"x" * 1_000_000)
    await writer.drain()
    assert (await reader.read()).startswith(b"HTTP/1.1 413 ")


async def test_heads_end(short_gateway: Mock) -> None:
    """All at once: each waits for its own deadline."""
    ends = [
        (b"", b""),
        (b"GET / HT", b"HTTP/1.1 408 "),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: y\r\n", b"HTTP/1.1 408 "),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"y" * 70_000, b"HTTP/1.1 431 "),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", b"HTTP/1.1 431 "),
        (b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n", b"HTTP/1.1 431 "),
        (b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", b"HTTP/1.1 431 "),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"HTTP/1.1 400 "),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"HTTP/1.1 400 "),
    ]
    answers = await asyncio.gather(*(exchange(short_gateway.url, sent) for sent, _ in ends))
    for (sent, expected), answer in zip(ends, answers, strict=True):
        assert answer.startswith(expected) and bool(answer) == bool(expected), sent[:80]


async def test_a_trickled_head_and_a_second_one_end_too(short_gateway: Mock) -> None:
    for first in (b"", b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"):
        reader, writer = await connect(short_gateway)
        writer.write(first)
        if first:
            await reader.readuntil(b"\r\n\r\n")
        start_s = time.monotonic()
        ended = asyncio.create_task(reader.read())
        while not ended.done() and time.monotonic() < start_s + 60:
            writer.write(b"G")
            await asyncio.sleep(0.05)
        assert (await ended).startswith(b"HTTP/1.1 408 ")
