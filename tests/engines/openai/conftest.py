from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from tests.servers import MOCK, Mock


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mock_url() -> AsyncIterator[str]:
    async with child_server([MOCK]) as url:
        yield url


@pytest.fixture
async def mock(mock_url: str) -> AsyncIterator[Mock]:
    async with open_pool(None) as pool:
        yield Mock(pool, mock_url)
