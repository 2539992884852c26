"""Many requests a second through two gateways that share a signal: is one lost, and do they agree?

Starts a Redis, a server that answers each request after a time (`answering_server.py`), and the
gateways, and sends requests at fixed times, as long as connections are left. Prints what was sent,
how late, and what was lost; how long after one gateway the other handed out each level; how old the
levels were that the answers carried, from a level's first answer by either gateway on; and the
processor time of a request in each process, which says what rate a machine can carry.

    python -m benchmarks.two_gateways [--rate 1000] [--seconds 20]
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from bellman.engines.openai.child import child_server
from benchmarks.sender import REQUEST, Gateway, connect, outstanding, send

PERIOD_S = 1.0
SERVICE_S = 0.2
"""How long the server takes for an answer."""
SERVER = str(Path(__file__).parent / "answering_server.py")
STEP = 0.002
"""By so much the level rises a period while a request is held: each publication is another one."""
HELD = REQUEST.replace(b"completions ", b"completions?held ", 1)
DRAIN_S = 30.0
"""A request that has not ended so long after the last was sent is lost."""

Seen = Sequence[tuple[float, str]]
"""When an answer came, and the level that it carried."""


@dataclass
class Outcome:
    """What came of a run."""

    lateness_s: list[float]
    """Of each request that was sent: how long after its time."""
    served: int
    """Requests that the server saw."""
    took_s: float
    """Until the last was sent."""
    gateways: list[Gateway]
    processor_s: dict[str, float]
    """What each process took, of all requests."""

    @property
    def sent(self) -> int:
        """Requests that were sent."""
        return len(self.lateness_s)

    @property
    def answered(self) -> int:
        """Requests that were answered with 200."""
        return len(self.latencies_s)

    @property
    def latencies_s(self) -> list[float]:
        """Of all requests that were answered."""
        return [latency_s for gateway in self.gateways for latency_s in gateway.latencies_s]


def processor_s() -> Counter[str]:
    """Return the processor time that this process and its children have taken, by what they are."""
    taken: Counter[str] = Counter()
    me = psutil.Process()
    for process in (me, *me.children()):
        words = process.cmdline()
        if process == me:
            name = "sender"
        elif "bellman.gateway" in words:
            name = f"gateway {sum(found.startswith('gateway') for found in taken) + 1}"
        else:
            name = "server" if SERVER in words else "redis"
        times = process.cpu_times()
        taken[name] += times.user + times.system
    return taken


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
        server = [SERVER, "--service-s", str(SERVICE_S)]
        upstream = await stack.enter_async_context(child_server(server))
        gateways = []
        for _ in range(2):
            command = ["-m", "bellman.gateway", "--port", "0", "--with-parent", "--store", store]
            command += ["--upstream", f"one={upstream}"]
            url = await stack.enter_async_context(child_server(command, control))
            gateways.append(Gateway(url))
            stack.callback(gateways[-1].close)
        held = await connect(gateways[0].url)
        stack.callback(held.close)
        held.send(HELD, lambda *_: None)
        await asyncio.sleep(4 * PERIOD_S)

        places = max(64, round(4 * rate * SERVICE_S))
        before = processor_s()
        start_s = time.monotonic()
        lateness_s = await send(gateways, rate, round(rate * seconds), places)
        took_s = time.monotonic() - start_s
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                while outstanding(gateways):
                    await asyncio.sleep(0.01)
        after = processor_s()
        return Outcome(
            lateness_s=lateness_s,
            served=await served(upstream),
            took_s=took_s,
            gateways=gateways,
            processor_s={name: after[name] - before[name] for name in before},
        )


async def served(upstream: str) -> int:
    """Return how many requests the server saw."""
    answer = asyncio.get_running_loop().create_future()
    connection = await connect(upstream)
    connection.send(b"GET / HTTP/1.1\r\n\r\n", lambda _, whole: answer.set_result(whole))
    *_, text = (await answer).rpartition(b"\r\n\r\n")
    connection.close()
    return int(text)


def first_seen(seen: Seen) -> dict[str, float]:
    """Return when each level came first."""
    first: dict[str, float] = {}
    for time_s, level in seen:
        first.setdefault(level, time_s)
    return first


def lags_s(one: Seen, other: Seen) -> tuple[list[float], int]:
    """Return how much later the second gateway had each level, and how many one alone had."""
    found, elsewhere = first_seen(one), first_seen(other)
    common = sorted(found.keys() & elsewhere.keys())
    lags = [abs(found[level] - elsewhere[level]) for level in common]
    return lags, len(found.keys() ^ elsewhere.keys())


def ages_s(one: Seen, other: Seen) -> list[float]:
    """Return how old the level of each answer of the first was, since anyone handed it out."""
    born = first_seen(sorted([*one, *other]))
    return [time_s - born[level] for time_s, level in one]


def report(outcome: Outcome, rate: float) -> str:
    """Return what came of a run asked for a rate, in words."""
    sent, one, other = outcome.sent, *(gateway.seen for gateway in outcome.gateways)
    late_s = np.quantile(outcome.lateness_s, [0.5, 0.99, 1])
    latency_s = np.quantile(outcome.latencies_s, [0.5, 0.99, 1])
    lags, alone = lags_s(one, other)
    lines = [
        f"source: measured; {rate:g} requests/s asked for, {sent / outcome.took_s:.0f} sent",
        f"sent {sent}, lost {sent - outcome.answered}, the server saw {outcome.served}",
        "sent late by: median {:.4f} s, p99 {:.4f} s, at most {:.4f} s".format(*late_s),
        "latency: median {:.3f} s, p99 {:.3f} s, at most {:.3f} s".format(*latency_s)
        + f"; {SERVICE_S} s are the server's",
        f"levels: {len(lags)} at both gateways, {alone} at one alone",
        f"the other had it after: median {np.median(lags):.2f} s, at most {max(lags):.2f} s",
    ]
    for number, ages in enumerate((ages_s(one, other), ages_s(other, one)), 1):
        age_s = np.quantile(ages, [0.5, 0.99, 1])
        told = "age of gateway {}'s levels: median {:.2f} s, p99 {:.2f} s, at most {:.2f} s"
        lines.append(told.format(number, *age_s))
    lines += [
        f"processor: {name} {1000 * taken_s / sent:.3f} ms a request"
        for name, taken_s in sorted(outcome.processor_s.items())
    ]
    total_s = sum(outcome.processor_s.values())
    return "\n".join([*lines, f"processor: all {1000 * total_s / sent:.3f} ms a request"])


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    outcome = asyncio.run(run(arguments.rate, arguments.seconds))
    print(report(outcome, arguments.rate))
    sys.exit(outcome.answered != outcome.sent)


if __name__ == "__main__":
    main()
