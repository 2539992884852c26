"""One gateway before several servers: each has its own signal, and takes what spills over."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from bellman.signal import HEADER
from tests.servers import MOCK
from tests.store.gateways import Gateway, a_gateway, held, until

pytestmark = pytest.mark.slow
LAW = {"_target_": "bellman.controllers.threshold.Threshold", "limit": 3}
CONTROL = {"BELLMAN_CONTROL": json.dumps({"controller": LAW, "period_s": 0.05})}


@pytest.fixture
async def pool() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_pool(None) as pool:
        yield pool


@pytest.fixture
async def upstreams() -> AsyncIterator[tuple[str, str]]:
    async with child_server([MOCK]) as first, child_server([MOCK]) as second:
        yield first, second


async def behave(pool: aiohttp.ClientSession, url: str, **behaviour: object) -> None:
    async with pool.put(f"{url}/mock", json=behaviour) as answer:
        assert answer.status == 200


async def served(pool: aiohttp.ClientSession, url: str) -> int:
    async with pool.get(f"{url}/mock") as answer:
        return int((await answer.json())["requests"])


async def ask(pool: aiohttp.ClientSession, gateway: Gateway) -> tuple[int, str]:
    """Send a request; return its answer's status and level."""
    url = f"{gateway.url}/v1/chat/completions"
    async with pool.post(url, json={"min_tokens": 1}) as answer:
        return answer.status, answer.headers[HEADER]


async def test_what_the_first_does_not_take_goes_to_the_second(
    pool: aiohttp.ClientSession, upstreams: tuple[str, str], tmp_path: Path
) -> None:
    first, second = upstreams
    arguments = ["--upstream", f"first={first}", "--upstream", f"second={second}/v1"]
    with a_gateway(tmp_path, arguments, CONTROL) as gateway:
        await behave(pool, first, gap_s=0.1)
        assert await ask(pool, gateway) == (200, "0.0000")
        assert (await served(pool, first), await served(pool, second)) == (1, 0)

        await behave(pool, first, refuse_every=1, refuse_status=503)
        assert await ask(pool, gateway) == (200, "0.0000")
        assert (await served(pool, first), await served(pool, second)) == (1, 1)

        await behave(pool, first, gap_s=0.1)
        async with held(pool, gateway):  # the first is congested now
            await until(lambda: served(pool, first), 6)
            await until(lambda: _first_level(pool, gateway), 1.0)
            assert await ask(pool, gateway) == (200, "0.0000")  # the second's level
            assert (await served(pool, first), await served(pool, second)) == (6, 2)
        metrics = await gateway.metrics(pool)
        assert metrics["bellman_requests_spilled_total"] == 1
        async with pool.put(f"{gateway.url}/bellman/control", json={}) as answer:
            assert answer.status == 409 and HEADER in answer.headers


async def test_a_server_that_is_down_costs_no_request_its_answer(
    pool: aiohttp.ClientSession, upstreams: tuple[str, str], tmp_path: Path
) -> None:
    arguments = ["--upstream", "http://127.0.0.1:9", "--upstream", upstreams[0]]
    with a_gateway(tmp_path, arguments, CONTROL) as gateway:
        for _ in range(20):
            assert await ask(pool, gateway) == (200, "0.0000")
    assert await served(pool, upstreams[0]) == 20


async def _first_level(pool: aiohttp.ClientSession, gateway: Gateway) -> float | None:
    async with pool.get(f"{gateway.url}/bellman/metrics") as answer:
        text = await answer.text()
    found = text.partition('bellman_congestion_level{endpoint="first"} ')[2]
    return float(found.split("\n")[0]) if found else None
