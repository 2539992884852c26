"""Broken answers of every kind behind the gateway: each costs itself, and nothing else."""

import asyncio

import pytest

from bellman.engines.base import Request, RequestFailed
from bellman.engines.openai.connections import open_pool
from bellman.engines.openai.session import OpenAISession
from tests.engines.openai.hostile import EITHER, GOOD, KINDS, OK, REJECTED, HostileServer
from tests.servers import Mock, gateway, ignore, outstanding, raw_server


async def status_of(session: OpenAISession, kind: str) -> str:
    try:
        answer = await session.generate(Request(1, "d", kind, 5, 100), ignore)
    except RequestFailed as failure:
        assert len(failure.reason) < 400 and failure.reason.isprintable()
        return failure.status
    assert answer.text is not None and "stale" not in answer.text
    return "ok"


@pytest.mark.slow
async def test_every_broken_answer_costs_itself_alone() -> None:
    async with (
        raw_server(HostileServer(3).serve) as upstream,
        gateway(upstream) as url,
        open_pool(None) as pool,
    ):
        session = Mock(pool, url).session()
        for kind in KINDS:
            statuses = [await status_of(session, kind) for _ in range(2)]
            expected = "ok" if kind in OK else "rejected" if kind in REJECTED else "error"
            assert kind in EITHER or statuses == [expected] * 2, kind
            assert await status_of(session, GOOD) == "ok", f"after {kind}"
        async with asyncio.timeout(30):
            while await outstanding(Mock(pool, url)) > 0:  # the last one ends a moment after us
                await asyncio.sleep(0.01)
