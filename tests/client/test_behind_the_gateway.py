"""Adapted clients in the whole loop: a server, the gateway before it, a law, and back."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
import pytest_asyncio

from bellman.admission.accept_all import AcceptAll
from bellman.app.budget import BudgetRules
from bellman.client import adapt
from bellman.client.adapted import RULES
from bellman.controllers.bellman import QueueLaw
from bellman.controllers.threshold import Threshold
from bellman.engines.base import Control
from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from bellman.engines.openai.control import put_control
from bellman.words import count_words
from tests.servers import MOCK, ROOT, Mock, a_request, gateway, ignore

pytestmark = pytest.mark.slow

REQUEST: Any = {
    "model": "mock",
    "messages": [{"role": "user", "content": "Write at most {words} words."}],
}
HANGING = 4
FULL_ABOVE = Control(Threshold(limit=HANGING - 1), AcceptAll(), 0.02)
"""Full congestion while the four requests that hang are there, none with ours alone."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url() -> AsyncIterator[str]:
    async with child_server([MOCK]) as upstream_url, gateway(upstream_url) as gateway_url:
        yield gateway_url


@pytest.fixture
async def mock(url: str) -> AsyncIterator[Mock]:
    async with open_pool(None) as pool:
        yield Mock(pool, url)


@asynccontextmanager
async def congestion(mock: Mock) -> AsyncIterator[None]:
    await mock.behave(never_answers=True)
    hanging = [
        asyncio.create_task(mock.session().generate(a_request(), ignore)) for _ in range(HANGING)
    ]
    await until_level(mock, 1.0)
    await mock.behave(obeys=True)
    try:
        yield
    finally:
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        await until_level(mock, 0.0)


async def until_level(mock: Mock, level: float) -> None:
    async with asyncio.timeout(60):
        while (await mock.session().state()).level != level:
            await asyncio.sleep(0.01)


def synchronous(url: str, stream: bool) -> Callable[[], Awaitable[str]]:
    client = adapt(openai.OpenAI(base_url=f"{url}/v1", api_key="none"), default_words=400)

    def ask() -> str:
        if not stream:
            return client.chat.completions.create(**REQUEST).choices[0].message.content or ""
        chunks = client.chat.completions.create(**REQUEST, stream=True)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    return lambda: asyncio.to_thread(ask)


def asynchronous(url: str, stream: bool) -> Callable[[], Awaitable[str]]:
    client = adapt(openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none"), default_words=400)

    async def ask() -> str:
        if not stream:
            answer = await client.chat.completions.create(**REQUEST)
            return answer.choices[0].message.content or ""
        chunks = await client.chat.completions.create(**REQUEST, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])

    return ask


@pytest.mark.parametrize("client_of", [synchronous, asynchronous])
@pytest.mark.parametrize("stream", [False, True])
async def test_answers_are_short_while_the_server_is_congested(
    mock: Mock,
    client_of: Callable[[str, bool], Callable[[], Awaitable[str]]],
    stream: bool,
) -> None:
    await mock.behave(obeys=True)
    await put_control(mock.pool, mock.url, FULL_ABOVE)
    ask = client_of(mock.url, stream)
    lengths = [count_words(await ask())]
    async with congestion(mock):
        lengths += [count_words(await ask()) for _ in range(3)]
    lengths += [count_words(await ask()) for _ in range(2)]
    assert lengths == [400, 400, 100, 100, 100, 400]


async def test_threads_share_one_client(mock: Mock) -> None:
    await mock.behave(obeys=True, gap_s=0.0005)
    law = QueueLaw(q_low=0, q_high=8, max_step=1.0)
    await put_control(mock.pool, mock.url, Control(law, AcceptAll(), 0.02))
    client = adapt(openai.OpenAI(base_url=f"{mock.url}/v1", api_key="none"), default_words=400)

    def ask(_: int) -> int:
        answer = client.chat.completions.create(**REQUEST)
        return count_words(answer.choices[0].message.content or "")

    with ThreadPoolExecutor(8) as threads:
        lengths = await asyncio.to_thread(lambda: list(threads.map(ask, range(80))))
    rungs = BudgetRules(task="summary", default_words=400, **RULES).ladder_words
    assert len(lengths) == 80
    assert set(lengths) <= set(rungs)
    assert min(lengths) < 400  # eight at a time are congestion for this law
    assert client.word_budget.counts == {
        "received": 80,
        "absent": 0,
        "malformed": 0,
        "failures": 0,
    }


async def test_the_page_s_example_runs(mock: Mock, capsys: pytest.CaptureFixture[str]) -> None:
    await mock.behave(obeys=True)
    await put_control(mock.pool, mock.url, FULL_ABOVE)
    page = (ROOT / "docs" / "client.md").read_text()
    example, budget = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert "http://127.0.0.1:8001" in example
    example = example.replace("http://127.0.0.1:8001", mock.url)
    names: dict[str, Any] = {}
    await asyncio.to_thread(exec, compile(example, "client.md", "exec"), names)
    assert count_words(capsys.readouterr().out) == 400
    exec(compile(budget, "client.md", "exec"), names)
    assert names["words"] == 400
    assert names["client"].word_budget.counts["received"] == 1
