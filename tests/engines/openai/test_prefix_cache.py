"""The second arm sends the first one's documents: it must not find them in the server's cache."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.admission.accept_all import AcceptAll
from bellman.controllers.none import NoControl
from bellman.corpus.base import Corpus
from bellman.engines.base import Control, Request, SessionReport
from bellman.engines.openai import prefix_cache
from bellman.engines.openai.engine import OpenAIEngine
from bellman.engines.openai.fetch import Reply
from bellman.engines.openai.prefix_cache import salt
from bellman.engines.openai.session import ChatServer, body_of
from tests.servers import Mock, ignore

pytestmark = pytest.mark.slow

NONE = Control(NoControl(), AcceptAll(), 0.05)
PREFILL_S = 0.3
CACHED: dict[str, Any] = {"prefix_caching": True, "prefill_s": PREFILL_S}
PROMPT = "A document of some length. " * 40
REQUEST = Request(1, "d1", PROMPT, 50, 100)


async def two_arms(mock: Mock, **config: Any) -> tuple[list[float], list[SessionReport], Any]:
    """Send one prompt in each of two episodes; return its latencies, the reports and the facts."""
    configured = OpenAIEngine(base_url=mock.url, gateway=False, **config)
    latencies_s, reports = [], []
    loop = asyncio.get_running_loop()
    async with configured.create(Corpus("none", (), "none")) as engine:
        for _ in range(2):
            async with engine.session(NONE) as session:
                sent_s = loop.time()
                answer = await session.generate(REQUEST, ignore)
                latencies_s.append(answer.first_token_s - sent_s)
                reports.append(session.report())
        return latencies_s, reports, engine.describe()


@pytest.mark.parametrize(
    ("behaviour", "way", "salted"),
    [
        ({}, "first line", True),
        ({"resets": 405}, "first line", True),
        ({"resets": 200}, "reset", False),
        ({"resets": 200, "reset_refusals": 3}, "reset", False),  # requests of before still end
        ({"takes_cache_salt": True}, "cache_salt", True),
    ],
)
async def test_the_second_arm_gets_the_uncached_latency(
    mock: Mock, behaviour: dict[str, Any], way: str, salted: bool
) -> None:
    await mock.behave(**CACHED, **behaviour)
    latencies_s, reports, facts = await two_arms(mock)
    assert min(latencies_s) > 0.9 * PREFILL_S
    assert facts["prefix_cache"] == way
    assert [report.prefix_cache for report in reports] == [way, way]
    assert all(report.invalid_reasons == () for report in reports)
    salts = {report.salt for report in reports}
    assert len(salts) == 2 if salted else salts == {None}
    assert (facts["prefix_cache_salt_seed"] is not None) == salted


async def test_the_mock_does_cache(mock: Mock) -> None:
    await mock.behave(**CACHED)
    latencies_s, _, facts = await two_arms(mock, prefix_cache="disabled")
    assert latencies_s[0] > 0.9 * PREFILL_S > latencies_s[1]
    assert facts["prefix_cache"] == "disabled"


async def test_reset_alone_was_asked_for_and_does_not_work(
    mock: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefix_cache, "RESET_S", 0.3)
    for behaviour in ({}, {"resets": 500}, {"resets": 200, "reset_refusals": 10**6}):
        await mock.behave(**behaviour)
        _, reports, _ = await two_arms(mock, prefix_cache="reset")
        for report in reports:
            (reason,) = report.invalid_reasons
            assert "prefix cache was not emptied" in reason
            assert "engine.prefix_cache=salt" in reason


async def test_a_reset_that_fails_later_makes_that_episode_invalid(
    mock: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefix_cache, "RESET_S", 0.3)
    await mock.behave(resets=200)
    cache = await prefix_cache.choose(mock.pool, mock.url, "auto", known_off=False)
    assert (await cache.begin()).invalid_reasons == ()
    await mock.behave(resets=500)
    assert (await cache.begin()).invalid_reasons != ()


async def test_nobody_answers_the_reset(mock: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_cache, "RESET_S", 0.3)
    refusal = await prefix_cache.reset(mock.pool, "http://127.0.0.1:9")
    assert refusal is not None and "ClientConnectorError" in refusal


@pytest.mark.parametrize(
    ("status", "body", "succeeded"),
    [
        (200, b"", True),
        (204, b"", True),
        (200, b'{"success": true}', True),
        (200, b'{"status": "ok"}', True),
        (200, b"Cache reset.", True),
        (200, b'{"success": false}', False),
        (200, b'{"status": "failed", "reason": "blocks are in use"}', False),
        (200, b'{"status": "noop"}', False),
        (200, b"false", False),
        (200, b"Failed to reset prefix cache", False),
        (200, b'"Failed to reset prefix cache"', False),
        (200, b"\n<!doctype html><title>Welcome</title>", False),
        (202, b"", False),
        (302, b"", False),
        (404, b"", False),
        (500, b"", False),
    ],
)
def test_what_counts_as_a_reset(status: int, body: bytes, succeeded: bool) -> None:
    assert prefix_cache._succeeded(Reply(status, body)) is succeeded


@given(st.integers(0, 10**6 - 1), st.integers(0, 998))
def test_salts_differ_from_the_first_token_on(seed: int, number: int) -> None:
    one, next_one = salt(seed, number), salt(seed, number + 1)
    assert len(one) == len(next_one) == 9 and one.isdigit()
    assert one[0] != next_one[0]  # a tokenizer that takes digits one by one
    firsts = {salt(seed, n)[:3] for n in range(1000)}
    assert len(firsts) == 1000  # one that takes them by threes


async def test_the_line_stands_before_everything_and_the_prompt_is_whole(mock: Mock) -> None:
    await mock.behave()
    cache = await prefix_cache.choose(mock.pool, mock.url, "salt", known_off=False)
    state = await cache.begin()
    body = body_of(REQUEST, ChatServer("", "m", 1.0), state)
    assert body["messages"] == [{"role": "user", "content": f"{state.salt}\n\n{PROMPT}"}]
