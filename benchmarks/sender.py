"""Sends requests to gateways at fixed times over raw connections, at little cost.

What is sent and not answered whole with 200 is lost; nothing is sent twice.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

IDLE_S = 2.0
"""A connection that was not used for so long is closed."""
BODY = b'{"messages": [{"role": "user", "content": "' + b"word " * 100 + b'"}]}'
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
)
LEVEL = b"x-bellman-congestion: "
LENGTH = b"content-length: "
GOOD = b"HTTP/1.1 200 "


class Connection(asyncio.Protocol):
    """A connection with one request at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be ready."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""
        self._take: Callable[[Connection, bytes], None] | None = None
        self.sent_s = 0.0

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def send(self, request: bytes, take: Callable[["Connection", bytes], None]) -> None:
        """Send a request; `take` gets its whole answer, empty where the connection broke."""
        self._take = take
        self.sent_s = time.monotonic()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Take a part of an answer."""
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._data[:end].lower()
        place = head.find(LENGTH)
        if place < 0:  # not what the server answers
            self.close()
            return
        length = int(head[place + len(LENGTH) :].split(b"\r\n", 1)[0])
        if len(self._data) >= end + 4 + length:
            whole, self._data = self._data, b""
            self._end(whole)

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that no answer comes."""
        self._end(b"")

    def _end(self, answer: bytes) -> None:
        take, self._take = self._take, None
        if take is not None:
            take(self, answer)


async def connect(url: str) -> Connection:
    """Open a connection."""
    host, _, port = url.removeprefix("http://").partition(":")
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, host, int(port))
    return connection


class Gateway:
    """A gateway, the idle connections to it, and what it answered."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.outstanding = 0
        """Requests that have not ended."""
        self._idle: list[Connection] = []
        self._opening: set[asyncio.Task[None]] = set()
        self.latencies_s: list[float] = []
        """Of requests that were answered."""
        self.seen: list[tuple[float, str]] = []

    def ask(self) -> None:
        """Send one request."""
        self.outstanding += 1
        while self._idle and time.monotonic() - self._idle[0].sent_s > IDLE_S:
            self._idle.pop(0).close()  # before the gateway does, as a request is on its way
        if self._idle:
            self._idle.pop().send(REQUEST, self._take)
        else:
            task = asyncio.create_task(self._ask_anew())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def close(self) -> None:
        """Close the connections."""
        for connection in self._idle:
            connection.close()

    async def _ask_anew(self) -> None:
        try:
            connection = await connect(self.url)
        except OSError:
            self.outstanding -= 1
        else:
            connection.send(REQUEST, self._take)

    def _take(self, connection: Connection, answer: bytes) -> None:
        if answer.startswith(GOOD):
            now_s = time.monotonic()
            self.latencies_s.append(now_s - connection.sent_s)
            self._idle.append(connection)
            head = answer[: answer.find(b"\r\n\r\n") + 2]
            place = head.lower().find(LEVEL)
            level = head[place + len(LEVEL) :].split(b"\r\n", 1)[0] if place >= 0 else b""
            self.seen.append((now_s, level.decode()))
        self.outstanding -= 1


async def send(gateways: Sequence[Gateway], rate: float, count: int, places: int) -> list[float]:
    """Send requests to gateways in turn; return how long after its time each was sent.

    At most `places` are outstanding: one that finds none is sent late.
    """
    lateness_s = []
    start_s = time.monotonic()
    for number in range(count):
        due_s = start_s + number / rate
        if (wait_s := due_s - time.monotonic()) > 0:
            await asyncio.sleep(wait_s)
        while outstanding(gateways) >= places:
            await asyncio.sleep(0.001)
        gateways[number % len(gateways)].ask()
        lateness_s.append(time.monotonic() - due_s)
    return lateness_s


def outstanding(gateways: Sequence[Gateway]) -> int:
    """Return how many requests have not ended."""
    return sum(gateway.outstanding for gateway in gateways)
