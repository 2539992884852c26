"""A connection that the server closed between two answers costs time, and no request."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from bellman.engines.base import RequestFailed
from bellman.engines.openai import connections
from bellman.engines.openai.connections import open_pool
from bellman.engines.openai.session import OpenAISession
from tests.servers import Mock, a_request, ignore, raw_server

CHUNK = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"content-length: %d\r\n\r\n" % len(CHUNK) + CHUNK
)
Drop = Callable[[asyncio.StreamWriter], None]


def close(writer: asyncio.StreamWriter) -> None:
    writer.close()


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with a RST, as a server that has unread bytes."""
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Server:
    """Answers the first `answers` requests of each connection, then drops it."""

    def __init__(self, answers: int, drop: Drop, before_drop: bytes = b"") -> None:
        self.requests = 0
        self.answers = answers
        self.drop = drop
        self.before_drop = before_drop
        self.wait_s = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(self.answers):
            if not await self._request(reader):
                return writer.close()
            writer.write(ANSWER)
            await writer.drain()
        if await self._request(reader):
            writer.write(self.before_drop)
            await asyncio.sleep(self.wait_s or 0.05 * bool(self.before_drop))
        self.drop(writer)

    async def _request(self, reader: asyncio.StreamReader) -> bool:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        self.requests += 1
        return True


@asynccontextmanager
async def session(server: Server) -> AsyncIterator[OpenAISession]:
    async with raw_server(server.serve) as url, open_pool(None) as pool:
        yield Mock(pool, url).session()


@pytest.mark.parametrize("drop", [close, reset])
async def test_a_request_on_a_stale_connection_is_sent_again(drop: Drop) -> None:
    server = Server(1, drop)
    async with session(server) as client:
        retries = []
        for _ in range(3):  # fresh, dropped and sent again, dropped and sent again
            answer = await client.generate(a_request(), ignore)
            assert answer.text == "Hi"
            retries.append(answer.retries)
    assert retries == [0, 1, 1]
    assert client.report().retries == 2
    assert client.report().warnings == (
        "2 requests were sent again: the server had closed their connections",
    )


async def test_the_second_try_takes_no_other_stale_connection() -> None:
    server = Server(1, close)
    async with session(server) as client:
        first = [client.generate(a_request(), ignore) for _ in range(20)]
        await asyncio.gather(*first)  # twenty connections in the pool, all of them stale
        again = [client.generate(a_request(), ignore) for _ in range(20)]
        answers = await asyncio.gather(*again)
    assert {answer.text for answer in answers} == {"Hi"}


async def test_a_fresh_connection_that_dies_is_no_stale_one() -> None:
    server = Server(0, close)
    async with session(server) as client:
        with pytest.raises(RequestFailed, match="connection failed") as failure:
            await client.generate(a_request(), ignore)
    assert (server.requests, failure.value.retries) == (1, 0)
    assert client.report().warnings == ()


async def test_the_second_try_is_the_last() -> None:
    server = Server(1, close)
    async with session(server) as client:
        await client.generate(a_request(), ignore)
        server.answers = 0
        with pytest.raises(RequestFailed, match="connection failed") as failure:
            await client.generate(a_request(), ignore)
    assert (server.requests, failure.value.retries) == (3, 1)


@pytest.mark.parametrize("drop", [close, reset])
@pytest.mark.parametrize("sent", [b"H", b"HTTP/1.1 200 OK\r\ncontent-ty", ANSWER[:120]])
async def test_nothing_is_sent_again_once_the_answer_began(drop: Drop, sent: bytes) -> None:
    server = Server(1, drop, before_drop=sent)
    async with session(server) as client:
        await client.generate(a_request(), ignore)
        with pytest.raises(RequestFailed, match="connection failed") as failure:
            await client.generate(a_request(), ignore)
    assert (server.requests, failure.value.retries) == (2, 0)


async def test_a_server_that_worked_on_it_first_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "STALE_S", 0.1)
    server = Server(1, close)
    server.wait_s = 0.3
    async with session(server) as client:
        await client.generate(a_request(), ignore)
        with pytest.raises(RequestFailed, match="connection failed"):
            await client.generate(a_request(), ignore)
    assert server.requests == 2


@pytest.mark.parametrize(
    "unasked", [ANSWER.replace(b"Hi", b"No"), b"HTTP/1.1 408 Timeout\r\ncontent-length: 0\r\n\r\n"]
)
async def test_what_a_server_says_unasked_is_no_answer(unasked: bytes) -> None:
    said = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while b"\r\n\r\n" in await reader.read(65536):
            writer.write(ANSWER)
            await asyncio.sleep(0.05)
            writer.write(unasked)
            await writer.drain()
            said.set()
        writer.close()

    async with raw_server(serve) as url, open_pool(None) as pool:
        client = Mock(pool, url).session()
        for _ in range(3):
            said.clear()
            assert (await client.generate(a_request(), ignore)).text == "Hi"
            await said.wait()
            await asyncio.sleep(0.05)
