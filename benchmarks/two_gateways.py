"""Many requests a second through two gateways that share a signal: is one lost, and do they agree?

Starts a Redis, a server that answers each request after a time, and the gateways, and sends
requests at fixed times, as long as connections are left. Prints what was sent and what was lost,
for each level that one gateway handed out first, how long until the other had it, and the processor
time of a request, which says what rate a machine can carry.

    python benchmarks/two_gateways.py [--rate 1000] [--seconds 20]
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
import psutil

from bellman.engines.openai.child import child_server

PERIOD_S = 1.0
SERVICE_S = 0.2
"""How long the server takes for an answer."""
STEP = 0.002
"""By so much the level rises a period while a request is held: each publication is another one."""
IDLE_S = 2.0
"""A connection that was not used for so long is closed."""
BODY = b'{"messages": [{"role": "user", "content": "' + b"word " * 100 + b'"}]}'
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
)
HELD = b"POST /v1/chat/completions?held "
"""Begins a request that is never answered."""
ANSWER = b'{"choices": [{"message": {"role": "assistant", "content": "Yes."}}]}'
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(ANSWER),
    ANSWER,
)
LEVEL = b"x-bellman-congestion: "


class Server(asyncio.Protocol):
    """Answers every POST the same after a time; GET / says how many there were."""

    served = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        """Answer each whole request."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head, length = self._data[:end].lower(), 0
            if (place := head.find(b"content-length: ")) >= 0:
                length = int(head[place + 16 :].split(b"\r\n", 1)[0])
            if len(self._data) < end + 4 + length:
                return
            self._data = self._data[end + 4 + length :]
            if head.startswith(HELD.lower()):
                continue
            if head.startswith(b"post"):
                Server.served += 1
                asyncio.get_running_loop().call_later(SERVICE_S, self._answer, RESPONSE)
            elif head.startswith(b"get / "):
                text = str(Server.served).encode()
                length_line = b"Content-Length: %d" % len(text)
                self._answer(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (length_line, text))
            else:
                self._answer(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    def _answer(self, response: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(response)


async def serve() -> None:
    """Run the server until ended."""
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


class Connection(asyncio.Protocol):
    """A connection to a gateway, with one request at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be ready."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""
        self._answered: asyncio.Future[bytes] | None = None
        self.used_s = 0.0

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def send(self, request: bytes) -> "asyncio.Future[bytes]":
        """Send a request; the future is its whole response, empty where the connection broke."""
        self._answered = asyncio.get_running_loop().create_future()
        self.used_s = time.monotonic()
        self._transport.write(request)
        return self._answered

    def data_received(self, data: bytes) -> None:
        """Take a part of a response."""
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._data[:end].lower()
        length = int(head[head.find(b"content-length: ") + 16 :].split(b"\r\n", 1)[0])
        if len(self._data) >= end + 4 + length:
            whole, self._data = self._data, b""
            self._end(whole)

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that no answer comes."""
        self._end(b"")

    def _end(self, response: bytes) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(response)


async def connect(url: str) -> Connection:
    """Open a connection."""
    host, _, port = url.removeprefix("http://").partition(":")
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, host, int(port))
    return connection


@dataclass
class Gateway:
    """A gateway, its idle connections and the levels that it handed out."""

    url: str
    idle: list[Connection] = field(default_factory=list)
    levels: list[tuple[float, str]] = field(default_factory=list)
    """When each level came for the first time since another."""

    async def ask(self) -> bool:
        """Send one request; whether it was answered."""
        while self.idle and time.monotonic() - self.idle[0].used_s > IDLE_S:
            self.idle.pop(0).close()  # before the gateway does, as a request is on its way
        if self.idle:
            connection = self.idle.pop()
        else:
            connection = await connect(self.url)
        response = await connection.send(REQUEST)
        if not response.startswith(b"HTTP/1.1 200"):
            return False
        connection.used_s = time.monotonic()
        self.idle.append(connection)
        head = response[: response.find(b"\r\n\r\n") + 2]
        place = head.lower().find(LEVEL)
        level = head[place + len(LEVEL) :].split(b"\r\n", 1)[0].decode() if place >= 0 else ""
        if not self.levels or self.levels[-1][1] != level:
            self.levels.append((time.monotonic(), level))
        return True


@dataclass
class Outcome:
    """What came of a run."""

    sent: int
    answered: int
    served: int
    """Requests that the server saw."""
    took_s: float
    """Until the last was sent."""
    latencies_s: list[float]
    cpu_s: float
    """Processor time of a request in its gateway."""
    levels: list[list[tuple[float, str]]]
    """Of each gateway: when it began to hand out which level."""

    @property
    def rate(self) -> float:
        """Requests sent a second."""
        return self.sent / self.took_s


def gateways_cpu_s() -> float:
    """Return the processor time that the gateways have taken."""
    children = psutil.Process().children()
    times = [child.cpu_times() for child in children if "bellman.gateway" in child.cmdline()]
    return sum(time.user + time.system for time in times)


@asynccontextmanager
async def redis_server() -> AsyncIterator[str]:
    """Run a Redis on a free port; yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        process = subprocess.Popen([*command, "--dir", folder], stdout=subprocess.DEVNULL)
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()
            process.wait()


async def run(rate: float, seconds: float) -> Outcome:
    """Send requests at a rate through two gateways in turn."""
    law = {"_target_": "bellman.controllers.bellman.QueueLaw", "q_low": 0, "q_high": 1}
    law["max_step"] = STEP
    control = {"BELLMAN_CONTROL": json.dumps({"controller": law, "period_s": PERIOD_S})}
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(redis_server())
        upstream = await stack.enter_async_context(child_server([__file__, "--server"]))
        gateways = []
        for _ in range(2):
            command = ["-m", "bellman.gateway", "--port", "0", "--with-parent", "--store", store]
            command += ["--upstream", f"one={upstream}"]
            gateways.append(
                Gateway(await stack.enter_async_context(child_server(command, control)))
            )
        held = await connect(gateways[0].url)
        held.send(REQUEST.replace(b"POST /v1/chat/completions ", HELD))
        await asyncio.sleep(4 * PERIOD_S)
        tasks, latencies_s = [], []

        places = asyncio.Semaphore(max(64, round(4 * rate * SERVICE_S)))
        before_s = gateways_cpu_s()

        async def ask(gateway: Gateway) -> bool:
            start_s = time.monotonic()
            try:
                return await gateway.ask()
            finally:
                places.release()
                latencies_s.append(time.monotonic() - start_s)

        start_s = time.monotonic()
        for number in range(round(rate * seconds)):
            await asyncio.sleep(max(0.0, start_s + number / rate - time.monotonic()))
            await places.acquire()
            tasks.append(asyncio.create_task(ask(gateways[number % 2])))
        took_s = time.monotonic() - start_s
        answered = sum([await task for task in tasks])
        served = await (await connect(upstream)).send(b"GET / HTTP/1.1\r\n\r\n")
        return Outcome(
            sent=len(tasks),
            answered=answered,
            served=int(served.rpartition(b"\r\n\r\n")[2]),
            took_s=took_s,
            latencies_s=latencies_s,
            cpu_s=(gateways_cpu_s() - before_s) / len(tasks),
            levels=[gateway.levels for gateway in gateways],
        )


def lags_s(levels: Sequence[Sequence[tuple[float, str]]]) -> tuple[list[float], int]:
    """Return how much later the second gateway had each level, and how many one alone had."""
    first = [{level: time_s for time_s, level in reversed(found)} for found in levels]
    common = sorted(first[0].keys() & first[1].keys())
    return [abs(first[0][level] - first[1][level]) for level in common], len(
        first[0].keys() ^ first[1].keys()
    )


def main() -> None:
    """Run the benchmark, or its server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--server", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.server:
        asyncio.run(serve())
        return
    outcome = asyncio.run(run(arguments.rate, arguments.seconds))
    lags, alone = lags_s(outcome.levels)
    median_s, late_s = np.quantile(outcome.latencies_s, [0.5, 0.99])
    print(f"source: measured; {arguments.rate:g} requests/s asked for, {outcome.rate:.0f} sent")
    print(f"sent {outcome.sent}, answered {outcome.answered}, the server saw {outcome.served}")
    print(f"latency: median {median_s:.3f} s, p99 {late_s:.3f} s; {SERVICE_S} s are the server's")
    print(f"processor: {1000 * outcome.cpu_s:.2f} ms a request in its gateway")
    print(f"levels: {len(lags)} at both gateways, {alone} at one alone")
    print(f"the other had it after: median {np.median(lags):.2f} s, at most {max(lags):.2f} s")
    sys.exit(outcome.answered != outcome.sent)


if __name__ == "__main__":
    main()
