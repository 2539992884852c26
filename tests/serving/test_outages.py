"""A law or a sensor that fails inside a server: no level, one line in the log, answers as ever."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from bellman.signal import HEADER
from tests.servers import GATEWAY_ENVIRONMENT, MIDDLEWARE, MOCK, ROOT, Mock

PATCH = """
import runpy, sys, threading, time
from pathlib import Path
from prometheus_client import REGISTRY
from bellman.controllers.base import Level
from bellman.controllers.none import NoControl

folder = Path({folder!r})
sys.stderr = open(folder / "log", "w", buffering=1)

def update(law, state, observation, dt_s):
    said = (folder / "law").read_text()
    if said == "raise":
        raise RuntimeError("the law was told to raise")
    return Level(float(said))

def set_gauge():
    while True:
        time.sleep(0.01)
        gauge = REGISTRY._names_to_collectors.get("vllm:kv_cache_usage_perc")
        if gauge is not None:
            gauge.set(float((folder / "gauge").read_text()))

NoControl.update = update
threading.Thread(target=set_gauge, daemon=True).start()
runpy.run_path({mock!r}, run_name="__main__")
"""


@dataclass
class Server:
    mock: Mock
    folder: Path

    def say(self, name: str, text: str) -> None:
        """Write as a whole: the server reads it at any moment."""
        (self.folder / "new").write_text(text)
        (self.folder / "new").replace(self.folder / name)

    async def until(self, level: float | None) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while True:
                async with self.mock.pool.get(f"{self.mock.url}/bellman/congestion") as answer:
                    state: dict[str, Any] = await answer.json()
                if state["level"] == level:
                    return state
                await asyncio.sleep(0.02)

    async def headers(self) -> list[str]:
        url = f"{self.mock.url}/v1/chat/completions"
        async with self.mock.pool.post(url, json={"stream": True}) as answer:
            assert answer.status == 200 and b"three" in await answer.read()
            return answer.headers.getall(HEADER, [])


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    (tmp_path / "law").write_text("0.25")
    (tmp_path / "gauge").write_text("0.5")
    command = ["-c", PATCH.format(folder=str(tmp_path), mock=MOCK), "--middleware", MIDDLEWARE]
    environment = {**GATEWAY_ENVIRONMENT, "PYTHONPATH": str(ROOT)}
    async with child_server(command, environment) as url, open_pool(None) as pool:
        yield Server(Mock(pool, url), tmp_path)


async def test_a_law_that_fails(server: Server) -> None:
    await server.until(0.25)
    assert await server.headers() == ["0.2500"]
    for number, said in enumerate(("raise", "nan", "inf"), 1):
        server.say("law", said)
        state = await server.until(None)
        assert ("told to raise" if said == "raise" else said) in state["reason"]
        assert state["observation"]["running"] == 0  # the sensor is well
        assert await server.headers() == []
        await asyncio.sleep(0.2)
        server.say("law", "0.75")
        assert (await server.until(0.75))["outages_total"] == number
        assert await server.headers() == ["0.7500"]
        log = (server.folder / "log").read_text()
        assert log.count("no congestion level is published") == number
        assert log.count("is published again") == number
    for said, level in (("-3", 0.0), ("7", 1.0), ("-0.0", 0.0)):  # finite: clipped to the range
        server.say("law", said)
        await server.until(level)
        assert await server.headers() == [f"{level:.4f}"]


@pytest.mark.parametrize("value", ["inf", "nan", "1e300", "-1"])
async def test_a_sensor_that_fails(server: Server, value: str) -> None:
    await server.until(0.25)
    server.say("gauge", value)
    state = await server.until(None)
    assert "vllm:kv_cache_usage_perc" in state["reason"]
    assert state["observation"] is None
    assert await server.headers() == []
    server.say("gauge", "0.75")
    state = await server.until(0.25)
    assert (state["outages_total"], state["observation"]["kv_usage"]) == (1, 0.75)
    log = (server.folder / "log").read_text()
    assert log.count("no congestion level is published") == 1
    assert "Traceback" not in log
