import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from tests.servers import MIDDLEWARE, MOCK, Mock


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def signalling_url() -> AsyncIterator[str]:
    """Run the mock server with the middleware, loaded the way vLLM does."""
    environment = {
        "BELLMAN_CONTROL_ALLOWED": "1",
        "BELLMAN_CONTROL": json.dumps({"period_s": 0.02}),
    }
    async with child_server([MOCK, "--middleware", MIDDLEWARE], environment) as url:
        yield url


@pytest.fixture
async def mock(signalling_url: str) -> AsyncIterator[Mock]:
    async with open_pool(None) as pool:
        yield Mock(pool, signalling_url)
