"""A streaming server of known timing that costs little, and keeps a book of what it saw.

`python -m benchmarks.load_fidelity.server --ttft-ms 20 --gap-ms 10 --chunks 4` prints its URL. With
`--ttft-ms 0 --gap-ms 0 --chunks 1` it is a null server. GET /book returns the book and clears it.
"""

import argparse
import asyncio
import json
from dataclasses import dataclass, field

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"
)
MODELS = json.dumps({"object": "list", "data": [{"id": "mock", "object": "model"}]}).encode()


def event(data: str) -> bytes:
    """Return a server-sent event as one chunk of a chunked body."""
    text = f"data: {data}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(text), text)


def answer_part(choices: list[object], usage: object) -> bytes:
    """Return a `chat.completion.chunk` as an event."""
    part = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "mock"}
    return event(json.dumps(part | {"choices": choices, "usage": usage}))


TOKEN = answer_part(
    [{"index": 0, "delta": {"role": "assistant", "content": " word"}, "finish_reason": None}], None
)


def ending(tokens: int) -> bytes:
    """Return what follows the last token: finish reason, usage, `[DONE]`, end of the body."""
    usage = {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": tokens + 7}
    stop = answer_part([{"index": 0, "delta": {}, "finish_reason": "stop"}], None)
    return stop + answer_part([], usage) + event("[DONE]") + b"0\r\n\r\n"


@dataclass
class Book:
    """Times of the loop's clock, one entry a request: arrival, and when its first token left."""

    arrived_s: list[float] = field(default_factory=list)
    first_token_s: list[float | None] = field(default_factory=list)


class Timing:
    """What the server does with every request, and its book."""

    def __init__(self, ttft_s: float, gap_s: float, chunks: int) -> None:
        self.ttft_s = ttft_s
        self.gap_s = gap_s
        self.chunks = chunks
        self.ending = ending(chunks)
        self.book = Book()


class Connection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._path = b""
        self._missing: int | None = None
        """Bytes of the body to come; None before the head is whole."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request when its body is whole."""
        self._buffer += data
        while True:
            if self._missing is None:
                head, mark, rest = self._buffer.partition(b"\r\n\r\n")
                if not mark:
                    return
                self._path = head.split(b" ", 2)[1]
                _, _, after = head.lower().partition(b"content-length:")
                self._missing = int(after.split(b"\r\n", 1)[0]) if after else 0
                self._buffer = rest
            if len(self._buffer) < self._missing:
                return
            self._buffer = self._buffer[self._missing :]
            self._missing = None
            self._answer()

    def _answer(self) -> None:
        timing = self._timing
        if self._path.endswith(b"/chat/completions"):
            book = timing.book
            book.arrived_s.append(self._loop.time())
            book.first_token_s.append(None)
            index = len(book.arrived_s) - 1
            if timing.ttft_s > 0:
                self._loop.call_later(timing.ttft_s, self._send_token, book, index, 1)
            else:
                self._send_token(book, index, 1)
        elif self._path == b"/book":
            self._reply(json.dumps(vars(timing.book)).encode())
            timing.book = Book()
        elif self._path == b"/v1/models":
            self._reply(MODELS)
        else:
            found = self._path in (b"/health", b"/metrics")
            self._reply(b"", b"200 OK" if found else b"404 Not Found")

    def _reply(self, body: bytes, status: bytes = b"200 OK") -> None:
        head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\n" % status
        self._transport.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def _send_token(self, book: Book, index: int, number: int) -> None:
        if self._transport.is_closing():
            return
        first, last = number == 1, number == self._timing.chunks
        head, end = HEAD if first else b"", self._timing.ending if last else b""
        self._transport.write(head + TOKEN + end)
        if first:
            book.first_token_s[index] = self._loop.time()
        if not last:
            self._loop.call_later(self._timing.gap_s, self._send_token, book, index, number + 1)


async def serve(timing: Timing) -> None:
    """Serve on a free port of the loopback interface until ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(timing), "127.0.0.1", 0, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """Read the timing and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ttft-ms", type=float, default=20.0)
    parser.add_argument("--gap-ms", type=float, default=10.0)
    parser.add_argument("--chunks", type=int, default=4)
    given = parser.parse_args()
    asyncio.run(serve(Timing(given.ttft_ms / 1e3, given.gap_ms / 1e3, given.chunks)))


if __name__ == "__main__":
    main()
