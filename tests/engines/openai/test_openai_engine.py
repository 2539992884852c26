"""Attaching to a server that somebody else started, with and without the middleware."""

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest
from omegaconf import OmegaConf

from bellman.admission.accept_all import AcceptAll
from bellman.admission.queue_limit import QueueLimit
from bellman.build import build
from bellman.controllers.bellman import QueueLaw
from bellman.controllers.none import NoControl
from bellman.corpus.base import Corpus
from bellman.engines.base import Control, Engine, RequestFailed
from bellman.engines.openai.child import child_server
from bellman.engines.openai.engine import OpenAIEngine
from bellman.errors import ConfigError, RunError
from tests.servers import MIDDLEWARE, MOCK, Mock, a_request, ignore

NONE = Control(NoControl(), AcceptAll(), 0.02)
CONF = Path(__file__).parents[3] / "conf" / "engine" / "openai.yaml"


def attach(**values: Any) -> Engine:
    return OpenAIEngine(**values).create(Corpus("none", (), "none"))


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize("suffix", ["", "/v1/"])
async def test_a_server_without_middleware_gets_a_gateway(mock: Mock, suffix: str) -> None:
    await mock.behave()
    before = children()
    engine = attach(base_url=mock.url + suffix)
    async with engine, engine.session(NONE) as session:
        got: list[Any] = []
        answer = await session.generate(a_request(), got.append)
        assert got == [["0.0000"]]
        assert answer.text == "One two three."
        assert (await session.state()).level == 0.0
        facts = engine.describe()
        assert len(children() - before) == 1
    assert (facts["model"], facts["gateway"]) == ("mock", True)
    assert facts["prefix_cache"] == "first line"
    assert (facts["kv_blocks"], facts["kv_block_size"]) == (5824, 16)
    assert engine.source == "measured"
    assert children() == before


async def test_each_arm_has_its_control(mock: Mock) -> None:
    environment = {"BELLMAN_CONTROL_ALLOWED": "1"}
    command = [MOCK, "--middleware", MIDDLEWARE]
    async with child_server(command, environment) as url, attach(base_url=url) as engine:
        other = Mock(mock.pool, url)
        await other.behave(gap_s=0.02, chunks=["a"] * 20_000)
        law = Control(QueueLaw(q_low=0, q_high=2, max_step=1.0), QueueLimit(1), 0.02)
        async with engine.session(law) as session:
            task = asyncio.create_task(session.generate(a_request(), ignore))
            async with asyncio.timeout(60):
                while (await session.state()).level != 0.5:
                    await asyncio.sleep(0.02)
            with pytest.raises(RequestFailed, match="queue limit"):
                await session.generate(a_request(), ignore)
            task.cancel()
        # The next episode waits until the server is idle, and starts its own law at 0.
        async with engine.session(NONE) as session:
            state = await session.state()
            assert state.level == 0.0
            assert state.observation is not None and state.observation.outstanding == 0
        assert engine.describe()["gateway"] is False


async def test_without_a_gateway_the_servers_own_signal_comes_as_it_is(mock: Mock) -> None:
    await mock.behave(headers=[["x-bellman-congestion", "nan"]])
    before = children()
    engine = attach(base_url=mock.url, gateway=False)
    async with engine, engine.session(NONE) as session:
        got: list[Any] = []
        await session.generate(a_request(), got.append)
        assert got == [["nan"]]
        assert children() == before
        assert (await session.state()).level is None
    assert engine.describe()["law_switched_per_arm"] is False
    assert engine.response_source == "mock"


async def test_a_server_that_forbids_the_switch(mock: Mock) -> None:
    environment = {"BELLMAN_CONTROL_ALLOWED": "0"}
    async with (
        child_server([MOCK, "--middleware", MIDDLEWARE], environment) as url,
        attach(base_url=url) as engine,
    ):
        with pytest.raises(RunError, match="start the server with BELLMAN_CONTROL_ALLOWED=1"):
            async with engine.session(NONE):
                pass


async def test_no_server_is_one_line() -> None:
    with pytest.raises(
        RunError, match="no OpenAI-compatible server answers at http://127"
    ) as error:
        async with attach(base_url="http://127.0.0.1:9/v1"):
            pass
    assert "\n" not in str(error.value)


async def test_a_key_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BELLMAN_TEST_KEY", raising=False)
    with pytest.raises(RunError, match="BELLMAN_TEST_KEY"):
        async with attach(base_url="http://127.0.0.1:9", api_key_env="BELLMAN_TEST_KEY"):
            pass


def test_the_yaml_builds_the_engine() -> None:
    node = OmegaConf.create({"model": "m", "request_timeout_s": 5.0, "engine": {}})
    node.engine = OmegaConf.load(CONF)
    node.engine.base_url = "http://127.0.0.1:8000/v1"
    engine = build(node.engine, "engine")
    assert (engine.model, engine.request_timeout_s) == ("m", 5.0)
    assert engine.sampling == {"temperature": 0.0, "seed": 0}


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"base_url": "localhost:8000"}, "^base_url="),
        ({"base_url": "http://[::1"}, "^base_url="),
        ({"base_url": "http://h:99999"}, "^base_url="),
        ({"base_url": "http://h:port"}, "^base_url="),
        ({"base_url": "http://h/v1?api-version=1"}, "^base_url="),
        ({"base_url": "http://a host/v1"}, "^base_url="),
        ({"request_timeout_s": 0.0}, "^request_timeout_s="),
        ({"sampling": {"max_tokens": 3}}, "^sampling.max_tokens="),
    ],
)
def test_values_that_cannot_be(values: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        OpenAIEngine(**{"base_url": "http://127.0.0.1:8000", **values})
