"""Answers of any size: a request ends at a limit, and the process stays small."""

import asyncio
import resource
from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from bellman.engines.base import RequestFailed
from bellman.engines.openai import answer, session, sse
from bellman.engines.openai.connections import open_pool
from bellman.engines.openai.failures import http_failure
from bellman.engines.openai.fetch import NoReply, fetch
from tests.servers import Mock, a_request, ignore, raw_server

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
MOST_GROWTH_BYTES = 256 * 2**20
MEGABYTE = b"x" * 2**20
CHUNK = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'


class Endless:
    """Sends a head and then pieces without end, until the client leaves."""

    def __init__(self, head: bytes, pieces: Iterator[bytes], pause_s: float = 0.0) -> None:
        self.left = asyncio.Event()
        self._pieces = chain([head], pieces)
        self._pause_s = pause_s

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            for piece in self._pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(self._pause_s)
        except ConnectionError:
            pass
        self.left.set()
        writer.close()


async def failure_of(server: Endless, timeout_s: float = 60.0) -> RequestFailed:
    """Ask the server; it must be left, and this process must not have grown."""
    before_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with raw_server(server.serve) as url, open_pool(None) as pool:
        with pytest.raises(RequestFailed) as failure:
            await Mock(pool, url).session(timeout_s).generate(a_request(), ignore)
        await server.left.wait()
    grown_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_bytes
    assert grown_bytes < MOST_GROWTH_BYTES
    assert len(failure.value.reason) < 400
    return failure.value


@pytest.mark.parametrize(
    ("head", "piece", "reason"),
    [
        (STREAM + b"\r\ndata: ", MEGABYTE, "an event of more than 8 MiB"),
        (STREAM + b"\r\n", b"data: " + b"y" * 65536 + b"\n", "an event of more than 8 MiB"),
        (STREAM + b"\r\n: ", MEGABYTE, "an event of more than 8 MiB"),
        (STREAM + b"\r\n", b": " + MEGABYTE + b"\n\n", "an answer of more than 32 MiB"),
        (b"HTTP/1.1 500 No\r\n\r\n", MEGABYTE, "HTTP 500: xxx"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
            MEGABYTE,
            "text/html, not a stream",
        ),
        (b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n" * 1000, "connection failed"),
        (b"HTTP/1.1 200 OK\r\nX: ", MEGABYTE, "connection failed"),
    ],
)
async def test_what_never_ends_meets_a_limit(head: bytes, piece: bytes, reason: str) -> None:
    failure = await failure_of(Endless(head, repeat(piece)))
    assert failure.status == "error"
    assert reason in failure.reason


@pytest.mark.parametrize(
    ("head", "piece", "reason"),
    [
        (STREAM + b"\r\n", CHUNK * 1000, "an answer in more than 20000 pieces"),
        (
            STREAM + b"Transfer-Encoding: chunked\r\n\r\n",
            (b"%x\r\n" % len(CHUNK) + CHUNK + b"\r\n") * 1000,
            "an answer in more than 20000 pieces",
        ),
        (
            STREAM + b"Transfer-Encoding: chunked\r\n\r\n",
            b"1\r\n:\r\n" * 10_000,
            "an event of more than",
        ),
    ],
)
async def test_tiny_pieces_without_end(
    head: bytes, piece: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer, "MOST_PIECES", 20_000)  # lower limits: parsing takes its time
    monkeypatch.setattr(sse, "LARGEST_EVENT_BYTES", 2**17)
    failure = await failure_of(Endless(head, repeat(piece)))
    assert failure.status == "error"
    assert reason in failure.reason


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (STREAM + b"\r\n", b": still there\n\n"),
        (STREAM + b"\r\n", CHUNK),
    ],
)
async def test_what_only_drips_meets_the_deadline(head: bytes, piece: bytes) -> None:
    failure = await failure_of(Endless(head, repeat(piece), pause_s=0.05), timeout_s=0.4)
    assert (failure.status, failure.reason) == ("timeout", "no whole answer within 0.4 s")


async def test_a_refusal_is_one_though_its_body_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "ERROR_BODY_S", 0.2)
    server = Endless(b"HTTP/1.1 429 Full\r\n\r\n", repeat(b"."), pause_s=0.05)
    failure = await failure_of(server)
    assert (failure.status, failure.reason) == ("rejected", "HTTP 429: no message")


async def test_a_whole_answer_is_one_though_its_stream_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "AFTER_DONE_S", 0.2)
    end = b'data: {"choices":[{"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    server = Endless(STREAM + b"\r\n" + CHUNK + end, repeat(b":\n\n"), pause_s=0.05)
    async with raw_server(server.serve) as url, open_pool(None) as pool:
        whole = await Mock(pool, url).session().generate(a_request(), ignore)
        await server.left.wait()
    assert whole.text == "a"


async def test_a_reply_beside_the_answers_has_a_limit_too() -> None:
    server = Endless(b"HTTP/1.1 200 OK\r\n\r\n", repeat(MEGABYTE))
    async with raw_server(server.serve) as url, open_pool(None) as pool:
        with pytest.raises(NoReply, match="more than 16 MiB"):
            await fetch(pool, "GET", f"{url}/v1/models")
        await server.left.wait()


async def test_no_redirection_is_followed_to_anybody() -> None:
    asked: list[bytes] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n"))
        writer.close()

    async with raw_server(elsewhere) as other, open_pool("a key") as pool:

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 307 There\r\nLocation: {other}/x\r\n\r\n".encode())
            writer.close()

        async with raw_server(serve) as url:
            with pytest.raises(RequestFailed, match=f"HTTP 307: redirects to {other}/x"):
                await Mock(pool, url).session().generate(a_request(), ignore)
            assert (await fetch(pool, "POST", f"{url}/reset_prefix_cache")).status == 307
            assert (await Mock(pool, url).session().state()).level is None
    assert asked == []


def test_a_redirection_is_told_without_what_its_query_holds() -> None:
    failure = http_failure(302, b"", "https://u:user-secret@h/x?X-Amz-Signature=query-secret")
    assert "https://***@h/x?X-Amz-Signature=***" in failure.reason
    assert "secret" not in failure.reason
