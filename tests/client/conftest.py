from collections.abc import AsyncIterator

import pytest_asyncio

from bellman.engines.openai.child import child_server
from tests.servers import ROOT

ECHO = str(ROOT / "tests" / "client" / "echo_server.py")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def echo_url() -> AsyncIterator[str]:
    async with child_server([ECHO]) as url:
        yield url
