"""Gateways as processes that a test can kill and stop, and the requests that it sends them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

PERIOD_S = 0.5
LIMIT = 9
"""Outstanding requests above which the level is 1: more than `HELD`, less than twice that."""
HELD = 6
"""Requests that a test holds open at each gateway."""
CONTROL = {
    "BELLMAN_CONTROL": json.dumps(
        {
            "controller": {
                "_target_": "bellman.controllers.threshold.Threshold",
                "limit": LIMIT,
            },
            "period_s": PERIOD_S,
        }
    )
}


@dataclass
class Gateway:
    """A running gateway."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    async def level(self, pool: aiohttp.ClientSession) -> float | None:
        async with pool.get(f"{self.url}/bellman/congestion") as answer:
            level: float | None = (await answer.json())["level"]
            return level

    async def metrics(self, pool: aiohttp.ClientSession) -> dict[str, float]:
        """Return the sums over the labels of every sample."""
        async with pool.get(f"{self.url}/bellman/metrics") as answer:
            text = await answer.text()
        sums: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
        return sums


@contextmanager
def a_gateway(
    folder: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    patch: str = "",
) -> Iterator[Gateway]:
    """Run a gateway; `patch` is Python that runs in it first."""
    log = folder / f"gateway-{time.monotonic_ns()}.log"
    start = f"{patch}\nfrom bellman.gateway.__main__ import main\nmain()"
    command = [sys.executable, *(("-c", start) if patch else ("-m", "bellman.gateway"))]
    command += ["--port", "0", *arguments]
    command += ["--scrape-period-s", "0.2", "--with-parent"]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **CONTROL, **(environment or {})},
        )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url.startswith("http"), log.read_text()
        yield Gateway(process, url, log)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


@asynccontextmanager
async def held(pool: aiohttp.ClientSession, gateway: Gateway) -> AsyncIterator[None]:
    """Hold requests open at a gateway."""

    async def hold() -> None:
        body = {"stream": True, "min_tokens": 1_000_000}
        try:
            async with pool.post(f"{gateway.url}/v1/chat/completions", json=body) as answer:
                async for _ in answer.content:
                    pass
        except aiohttp.ClientError:
            pass  # the gateway was killed

    tasks = [asyncio.create_task(hold()) for _ in range(HELD)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class Traffic:
    """Short requests, one after another, and what they came to."""

    statuses: list[int] = field(default_factory=list)

    @property
    def lost(self) -> list[int]:
        return [status for status in self.statuses if status != 200]


@asynccontextmanager
async def traffic(pool: aiohttp.ClientSession, *gateways: Gateway) -> AsyncIterator[Traffic]:
    """Send short requests to gateways in turn until the end."""
    sent = Traffic()

    async def send() -> None:
        while True:
            for gateway in gateways:
                body = {"min_tokens": 1}
                url = f"{gateway.url}/v1/chat/completions"
                async with pool.post(url, json=body) as answer:
                    await answer.read()
                    sent.statuses.append(answer.status)
            await asyncio.sleep(0.02)

    task = asyncio.create_task(send())
    try:
        yield sent
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(sent.statuses) > 10 and sent.lost == []


async def until(check: Callable[[], Awaitable[Any]], wanted: Any, within_s: float = 60.0) -> None:
    """Wait until something is as it should be."""
    seen = None
    try:
        async with asyncio.timeout(within_s):
            while (seen := await check()) != wanted:
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"{seen} is not {wanted} within {within_s} s") from None


async def until_levels(
    pool: aiohttp.ClientSession, gateways: Sequence[Gateway], wanted: Sequence[float | None]
) -> None:
    """Wait until all gateways have the level that they should have."""

    async def levels() -> list[float | None]:
        return [await gateway.level(pool) for gateway in gateways]

    await until(levels, list(wanted))


async def holder(pool: aiohttp.ClientSession, gateways: Sequence[Gateway]) -> int:
    """Return which gateway holds the lease, as soon as exactly one says so."""
    async with asyncio.timeout(60):
        while True:
            told = [(await gateway.metrics(pool))["bellman_lease_held"] for gateway in gateways]
            if told.count(1.0) == 1:
                return told.index(1.0)
            await asyncio.sleep(0.02)
