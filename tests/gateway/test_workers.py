"""Several gateway processes behind one port, with uvicorn's workers."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import psutil
import pytest

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from tests.servers import MOCK
from tests.store.gateways import Gateway, a_gateway, held, until
from tests.store.servers import needs_redis, redis_server

pytestmark = [pytest.mark.slow, needs_redis]
WORKERS = 2


@pytest.fixture
async def pool() -> AsyncIterator[aiohttp.ClientSession]:
    """Open a connection a request: each is accepted by either process."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as pool:
        yield pool


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    with redis_server(tmp_path) as server:
        yield server.url


@pytest.fixture
async def gateway(
    redis_url: str, pool: aiohttp.ClientSession, tmp_path: Path
) -> AsyncIterator[Gateway]:
    async with child_server([MOCK]) as upstream, open_pool(None) as own_pool:
        async with own_pool.put(f"{upstream}/mock", json={"gap_s": 0.1}) as answer:
            assert answer.status == 200
        arguments = ["--upstream", f"one={upstream}", "--store", redis_url]
        with a_gateway(tmp_path, [*arguments, "--workers", str(WORKERS)]) as gateway:
            await until(lambda: told(pool, gateway, "bellman_gateways"), WORKERS)
            yield gateway


async def told(pool: aiohttp.ClientSession, gateway: Gateway, name: str) -> float | None:
    return (await gateway.metrics(pool)).get(name)


def worker_ids(gateway: Gateway) -> set[int]:
    """Return the ids of the processes that serve."""
    children = psutil.Process(gateway.process.pid).children()
    running = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
    return {child.pid for child in running if "spawn_main" in " ".join(child.cmdline())}


async def test_all_processes_answer_as_one_gateway(
    gateway: Gateway, pool: aiohttp.ClientSession
) -> None:
    async with held(pool, gateway), held(pool, gateway):
        # Wherever they were accepted, every process knows of all 12, and has their level.
        await until(lambda: told(pool, gateway, "bellman_requests_in_flight"), 12)
        for _ in range(10):
            await until(lambda: gateway.level(pool), 1.0)
        for _ in range(50):
            url = f"{gateway.url}/v1/chat/completions"
            async with pool.post(url, json={"min_tokens": 1}) as answer:
                assert answer.status == 200
        for _ in range(10):  # whichever is asked counts for all
            await until(lambda: told(pool, gateway, "bellman_requests_total"), 50)
            metrics = await gateway.metrics(pool)
            assert metrics["bellman_request_duration_seconds_count"] == 50
        # The other process tells once a second whether it holds the lease.
        await until(lambda: told(pool, gateway, "bellman_lease_held"), 1)


async def test_a_killed_worker_is_replaced_and_what_it_counted_stays(
    gateway: Gateway, pool: aiohttp.ClientSession
) -> None:
    for _ in range(10):
        async with pool.post(
            f"{gateway.url}/v1/chat/completions", json={"min_tokens": 1}
        ) as answer:
            assert answer.status == 200
    before = worker_ids(gateway)
    assert len(before) == WORKERS
    os.kill(min(before), signal.SIGKILL)

    async def replaced() -> bool:
        now = worker_ids(gateway)
        return len(now) == WORKERS and min(before) not in now

    await until(replaced, True)
    await until(lambda: told(pool, gateway, "bellman_gateways"), WORKERS)
    await until(lambda: told(pool, gateway, "bellman_lease_held"), 1)
    assert await told(pool, gateway, "bellman_requests_total") == 10


async def test_workers_end_with_the_process_that_started_them(
    gateway: Gateway, pool: aiohttp.ClientSession
) -> None:
    workers = worker_ids(gateway)
    gateway.kill()
    async with asyncio.timeout(60):
        while any(map(psutil.pid_exists, workers)):
            await asyncio.sleep(0.05)
