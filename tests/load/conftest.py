from collections.abc import AsyncIterator

import pytest

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from tests.servers import MOCK, Mock


@pytest.fixture
async def mock() -> AsyncIterator[Mock]:
    async with child_server([MOCK]) as url, open_pool(None) as pool:
        yield Mock(pool, url)
