import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from tests.servers import MOCK, Mock, gateway, outstanding


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def urls() -> AsyncIterator[tuple[str, str]]:
    """Run the mock server without middleware, and the gateway in front of it."""
    async with child_server([MOCK]) as upstream_url, gateway(upstream_url) as url:
        yield upstream_url, url


@pytest.fixture
async def mock(urls: tuple[str, str]) -> AsyncIterator[Mock]:
    """The mock as it is reached through the gateway."""
    async with open_pool(None) as pool:
        yield Mock(pool, urls[1])
        async with asyncio.timeout(60):  # leave nothing in flight to the next test
            while await outstanding(Mock(pool, urls[1])):
                await asyncio.sleep(0.01)
