"""Two gateways as processes before one server, a real store, and what can happen to them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import aiohttp
import pytest

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from bellman.signal import HEADER
from tests.servers import MOCK
from tests.store.gateways import Gateway, a_gateway, held, holder, traffic, until_levels
from tests.store.network import a_host
from tests.store.servers import AWS, RedisServer, dynamodb_server, needs_redis, redis_server

pytestmark = [pytest.mark.slow, needs_redis]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


@pytest.fixture
async def pool() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_pool(None) as pool:
        yield pool


@pytest.fixture
async def upstream(pool: aiohttp.ClientSession) -> AsyncIterator[str]:
    """The mock; a request for many tokens takes for ever, one for a single token no time."""
    async with child_server([MOCK]) as url:
        async with pool.put(f"{url}/mock", json={"gap_s": 0.1}) as answer:
            assert answer.status == 200
        yield url


@pytest.fixture
async def gateways(
    redis: RedisServer, pool: aiohttp.ClientSession, upstream: str, tmp_path: Path
) -> AsyncIterator[list[Gateway]]:
    """Two gateways that hold requests: the level is 1 only where both are counted."""
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(2):
            arguments = ["--upstream", f"one={upstream}", "--store", redis.url]
            found.append(stack.enter_context(a_gateway(tmp_path, arguments)))
        for gateway in found:
            await stack.enter_async_context(held(pool, gateway))
        await until_levels(pool, found, [1.0, 1.0])
        yield found


async def test_the_store_is_killed_and_comes_back(
    redis: RedisServer, gateways: list[Gateway], pool: aiohttp.ClientSession
) -> None:
    async with traffic(pool, *gateways):
        redis.kill()
        await until_levels(pool, gateways, [None, None])
        for gateway in gateways:
            metrics = await gateway.metrics(pool)
            assert "bellman_congestion_level" not in metrics
            assert metrics["bellman_store_up"] == 0
            async with pool.get(f"{gateway.url}/health") as answer:
                assert answer.status == 200 and HEADER not in answer.headers
        redis.start()
        await until_levels(pool, gateways, [1.0, 1.0])
    for gateway in gateways:
        metrics = await gateway.metrics(pool)
        assert metrics["bellman_store_up"] == 1
        # A busy machine may be slow enough for outages of its own: each is one, and said once.
        log, outages = gateway.log.read_text(), metrics["bellman_store_outages_total"]
        assert outages >= 1
        assert log.count("the signal store: ") == log.count("answers again") == outages, log
        assert "Traceback" not in log


async def test_a_store_that_hangs_delays_no_request(
    redis: RedisServer, gateways: list[Gateway], pool: aiohttp.ClientSession
) -> None:
    redis.pause()
    try:
        async with traffic(pool, *gateways):
            await until_levels(pool, gateways, [None, None])
    finally:
        redis.go_on()
    await until_levels(pool, gateways, [1.0, 1.0])


async def test_the_holder_is_killed(gateways: list[Gateway], pool: aiohttp.ClientSession) -> None:
    dead = await holder(pool, gateways)
    other = gateways[1 - dead]
    async with traffic(pool, other):
        gateways[dead].kill()
        await until_levels(pool, [other], [0.0])  # its requests have gone with it
    assert await holder(pool, [other]) == 0
    assert (await other.metrics(pool))["bellman_gateways"] == 1
    log = other.log.read_text()
    assert "no congestion level" not in log and "store" not in log


async def test_a_holder_that_was_stopped_publishes_nothing_old(
    gateways: list[Gateway], pool: aiohttp.ClientSession
) -> None:
    asleep = await holder(pool, gateways)
    other = gateways[1 - asleep]
    gateways[asleep].pause()
    async with traffic(pool, other):
        await until_levels(pool, [other], [0.0])
        assert await holder(pool, [other]) == 0
        gateways[asleep].go_on()
        await until_levels(pool, gateways, [1.0, 1.0])
    assert await holder(pool, gateways) == 1 - asleep


async def test_clocks_that_differ_by_hours_change_nothing(
    redis: RedisServer, pool: aiohttp.ClientSession, upstream: str, tmp_path: Path
) -> None:
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        pytest.skip("no libfaketime (Debian's package of that name)")
    preload = {"LD_PRELOAD": str(library), "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    arguments = ["--upstream", f"one={upstream}", "--store", redis.url]
    async with AsyncExitStack() as stack:
        gateways = [
            stack.enter_context(a_gateway(tmp_path, arguments, {**preload, "FAKETIME": offset}))
            for offset in ("+2h", "-2h")
        ]
        for gateway in gateways:
            await stack.enter_async_context(held(pool, gateway))
        await until_levels(pool, gateways, [1.0, 1.0])
        dead = await holder(pool, gateways)
        gateways[dead].kill()
        await until_levels(pool, [gateways[1 - dead]], [0.0])


async def test_one_cut_off_from_the_store_is_alone_without_a_level(
    pool: aiohttp.ClientSession, upstream: str, tmp_path: Path
) -> None:
    """Redis in a network namespace of its own, with a cable to each gateway; one is pulled."""
    with ExitStack() as servers:
        host = servers.enter_context(a_host())
        servers.enter_context(redis_server(tmp_path, host))
        async with AsyncExitStack() as stack:
            gateways = []
            for address in host.addresses:
                store = f"redis://{address}:{host.port}/0"
                arguments = ["--upstream", f"one={upstream}", "--store", store]
                gateways.append(stack.enter_context(a_gateway(tmp_path, arguments)))
            for gateway in gateways:
                await stack.enter_async_context(held(pool, gateway))
            await until_levels(pool, gateways, [1.0, 1.0])
            cut = await holder(pool, gateways)
            async with traffic(pool, *gateways):
                host.cut(cut)
                alone: list[float | None] = [0.0, 0.0]
                alone[cut] = None
                await until_levels(pool, gateways, alone)
                assert (await gateways[cut].metrics(pool))["bellman_store_up"] == 0
                host.join(cut)
                await until_levels(pool, gateways, [1.0, 1.0])
            assert await holder(pool, gateways) == 1 - cut


async def test_dynamodb_carries_the_signal_as_well(
    pool: aiohttp.ClientSession, upstream: str, tmp_path: Path
) -> None:
    with ExitStack() as servers:
        url = servers.enter_context(dynamodb_server("signals"))
        arguments = ["--upstream", f"one={upstream}", "--store", "dynamodb://signals"]
        environment = {**AWS, "AWS_ENDPOINT_URL": url}
        async with AsyncExitStack() as stack:
            gateways = [
                stack.enter_context(a_gateway(tmp_path, arguments, environment)) for _ in range(2)
            ]
            for gateway in gateways:
                await stack.enter_async_context(held(pool, gateway))
            await until_levels(pool, gateways, [1.0, 1.0])
            dead = await holder(pool, gateways)
            async with traffic(pool, gateways[1 - dead]):
                gateways[dead].kill()
                await until_levels(pool, [gateways[1 - dead]], [0.0])
