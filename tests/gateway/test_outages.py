"""A gateway whose sensor fails publishes no level, says so once, and recovers."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from bellman.engines.openai.connections import open_pool
from bellman.engines.openai.control import read_state
from bellman.signal import HEADER
from tests.servers import gateway, raw_server

LAW = {"_target_": "bellman.controllers.bellman.QueueLaw", "q_low": 0, "q_high": 8, "max_step": 1}
METRICS = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 1.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 3.0e+09
"""


def response(body: str | bytes, head: str = "200 OK", length: int | None = None) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    length = len(body) if length is None else length
    return f"HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n".encode() + body


GOOD = response(METRICS)
HANGS = b""
DEADLINE_S = 2.0
"""Of a scrape."""
FAULTS = {
    **{
        f"a gauge of {value}": response(METRICS.replace("} 2.0", f"}} {value}"))
        for value in (
            *("+Inf", "-Inf", "NaN", "1e300", "1e400", "-1", "2.5", "1_0", "two", "", "0x2"),
            *("\u0662", "9007199254740994"),
        )
    },
    "a share beyond 1": response(METRICS.replace("0.25", "1.25")),
    "a share of NaN": response(METRICS.replace("0.25", "NaN")),
    "a counter of infinity": response(METRICS.replace("3.0e+09", "+Inf")),
    "no closing quote": response(METRICS.replace('"m"} 2.0', '"m} 2.0')),
    "no waiting requests": response(METRICS.replace("num_requests_waiting", "queue_depth")),
    "no running requests": response(METRICS.replace("num_requests_running", "batch_depth")),
    "other metrics": response("up 1\n"),
    "nothing": response(""),
    "HTML": response("<html><body>vllm:num_requests_running 3</body></html>"),
    "bytes": response(bytes(range(256))),
    "404": response("no", "404 Not Found"),
    "500": response(METRICS, "500 Internal Server Error"),
    "204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "a redirect": response("", "302 Found\r\nLocation: /good"),
    "half a body": response(METRICS[:200], length=len(METRICS)),
    "a line cut short": b"HTTP/1.1 200 OK\r\n\r\n" + METRICS.encode()[:-20],
    "no gzip": response(METRICS, "200 OK\r\nContent-Encoding: gzip"),
    "half a gzip": response(
        gzip.compress(METRICS.encode())[:-30], "200 OK\r\nContent-Encoding: gzip"
    ),
    "a bomb": response(gzip.compress(b"x" * 50_000_000), "200 OK\r\nContent-Encoding: gzip"),
    "a huge body": response(METRICS + "#" * 9_000_000),
    "many series": response(METRICS + 'vllm:num_requests_waiting{engine="2"} 0\n' * 20_000),
    "no HTTP": b"hello\r\n\r\n",
    "hanging up": b"HTTP/1.1 200",
    "no answer": HANGS,
}
FINE = {
    "gzip": response(gzip.compress(METRICS.encode()), "200 OK\r\nContent-Encoding: gzip"),
    "minus zero": response(METRICS.replace("} 0.0", "} -0")),
    "a restarted counter": response(METRICS.replace("3.0e+09", "7")),
    "a repeated gauge": response(METRICS + METRICS),
    "every rank": response(METRICS.replace("} 1.0", ',pid="7"} 1.0') + METRICS),
    "Windows lines": response(METRICS.replace("\n", "\r\n")),
}


@dataclass
class Upstream:
    """What GET /metrics answers now, and the gateway before it."""

    metrics: bytes = GOOD
    url: str = ""
    log: Path = Path()
    scrapes: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET /metrics "):
            self.scrapes += 1
            if self.metrics == HANGS:
                await reader.read()
            writer.write(self.metrics)
        else:
            writer.write(GOOD)
        writer.close()

    async def scraped(self, times: int) -> None:
        """Wait until the gateway has asked so often again: the answers before have been taken."""
        enough = self.scrapes + times
        async with asyncio.timeout(60):
            while self.scrapes < enough:
                await asyncio.sleep(0.005)

    def outages(self) -> int:
        return self.log.read_text().count("no congestion level is published")

    def recoveries(self) -> int:
        return self.log.read_text().count("is published again")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Upstream]:
    upstream = Upstream(log=tmp_path_factory.mktemp("gateway") / "log")
    patch = f"""
import sys
import bellman.gateway.scraper
sys.stderr = open({str(upstream.log)!r}, "w", buffering=1)
bellman.gateway.scraper.DEADLINE_S = {DEADLINE_S}
"""
    async with (
        raw_server(upstream.serve) as upstream_url,
        gateway(upstream_url, ["--shared", "--scrape-period-s", "0.01"], patch) as upstream.url,
        open_pool(None) as pool,
    ):
        control = {"controller": LAW, "period_s": 0.02}
        async with pool.put(f"{upstream.url}/bellman/control", json=control) as answer:
            assert answer.status == 200
        yield upstream


pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


async def poll(pool: aiohttp.ClientSession, upstream: Upstream) -> dict[str, Any]:
    async with pool.get(f"{upstream.url}/bellman/congestion") as answer:
        value: dict[str, Any] = json.loads(await answer.read())
        # The poll's own header says the same as its body.
        level = [] if value["level"] is None else [f"{value['level']:.4f}"]
        assert answer.headers.getall(HEADER, []) == level
        return value


async def until(pool: aiohttp.ClientSession, upstream: Upstream, level: float | None) -> Any:
    async with asyncio.timeout(60):
        while (state := await poll(pool, upstream))["level"] != level:
            await asyncio.sleep(0.01)
    return state


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_withdraws_the_level(upstream: Upstream, fault: str) -> None:
    async with open_pool(None) as pool:
        upstream.metrics = GOOD
        before = await until(pool, upstream, 0.5)  # (1 + 2 + 1 + 0) / 8
        assert before["reason"] is None
        observation = before["observation"]
        assert (observation["running"], observation["waiting"]) == (3, 1)
        assert observation["generated_tokens_total"] == 3_000_000_000
        outages, recoveries = upstream.outages(), upstream.recoveries()

        upstream.metrics = FAULTS[fault]
        state = await until(pool, upstream, None)
        assert state["observation"] is None and state["age_s"] >= 0
        assert "/metrics: " in state["reason"] or "does not report" in state["reason"]
        assert "\n" not in state["reason"] and len(state["reason"]) < 500
        await upstream.scraped(3)  # several periods and scrapes further it is still one outage
        async with pool.get(f"{upstream.url}/x") as answer:
            assert answer.status == 200 and HEADER not in answer.headers
        state = await poll(pool, upstream)
        assert state["outages_total"] == before["outages_total"] + 1
        assert upstream.outages() == outages + 1
        read = await read_state(pool, upstream.url)
        assert read is not None and (read.level, read.observation) == (None, None)
        assert read.level_age_s is not None and read.level_age_s >= state["age_s"]
        async with pool.get(f"{upstream.url}/bellman/metrics") as answer:
            text = await answer.text()
            outages = r"\nbellman_congestion_outages_total\{endpoint=.*\} (\d+).0\n"
            assert re.findall(outages, text) == [str(state["outages_total"])]
            assert "\nbellman_congestion_level{" not in text and HEADER not in answer.headers

        upstream.metrics = GOOD
        await until(pool, upstream, 0.5)
        async with pool.get(f"{upstream.url}/bellman/metrics") as answer:
            assert answer.headers.getall(HEADER) == ["0.5000"]
        assert upstream.recoveries() == recoveries + 1
        assert "Traceback" not in upstream.log.read_text()


@pytest.mark.parametrize("form", FINE)
async def test_other_forms_are_fine(upstream: Upstream, form: str) -> None:
    async with open_pool(None) as pool:
        upstream.metrics = FINE[form]
        await until(pool, upstream, 0.5)
        outages = (await poll(pool, upstream))["outages_total"]
        await upstream.scraped(3)
        state = await poll(pool, upstream)
        assert (state["level"], state["outages_total"]) == (0.5, outages)


async def test_a_gateway_alone_before_a_server_loses_its_level_with_the_metrics() -> None:
    upstream = Upstream()
    async with (
        raw_server(upstream.serve) as upstream_url,
        gateway(upstream_url) as upstream.url,
        open_pool(None) as pool,
    ):
        async with asyncio.timeout(60):
            while (await poll(pool, upstream))["observation"]["kv_usage"] != 0.25:
                await asyncio.sleep(0.02)
        assert (await poll(pool, upstream))["outages_total"] == 0  # its start was none
        upstream.metrics = FAULTS["500"]
        await until(pool, upstream, None)


@pytest.mark.parametrize(
    "fault",
    ["404", "HTML", "hanging up"],
)
async def test_a_server_without_metrics_is_counted_at_the_door(fault: str) -> None:
    upstream = Upstream(FAULTS[fault])
    async with (
        raw_server(upstream.serve) as upstream_url,
        gateway(upstream_url) as upstream.url,
        open_pool(None) as pool,
    ):
        await upstream.scraped(3)
        assert (await poll(pool, upstream))["level"] == 0.0


async def test_the_first_answer_of_a_shared_gateway_has_a_level() -> None:
    upstream = Upstream()
    async with (
        raw_server(upstream.serve) as upstream_url,
        gateway(upstream_url, ["--shared"]) as upstream.url,
        open_pool(None) as pool,
    ):
        state = await poll(pool, upstream)
        assert (state["level"], state["outages_total"]) == (0.0, 0)
        assert state["observation"]["running"] == 3


async def test_a_shared_server_without_metrics_has_no_level() -> None:
    upstream = Upstream(FAULTS["404"])
    async with (
        raw_server(upstream.serve) as upstream_url,
        gateway(upstream_url, ["--shared"]) as upstream.url,
        open_pool(None) as pool,
    ):
        assert (await poll(pool, upstream))["level"] is None
