"""Every store keeps the contract: in memory, in a real Redis, in DynamoDB's table at moto."""

from collections.abc import Iterator

import pytest

from bellman.errors import ConfigError
from bellman.store.memory import MemoryStore
from bellman.store.open import open_store
from bellman.virtual_time import run
from tests.store.contract import SCENES, Scene
from tests.store.servers import AWS, dynamodb_server, needs_redis, redis_server

LEASE_S = 2.0
"""Longer than a loaded machine takes for a few calls."""


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server.url


@pytest.fixture(scope="module")
def dynamodb_url() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, dynamodb_server("signals") as url:
        for name, value in {**AWS, "AWS_ENDPOINT_URL": url}.items():
            patch.setenv(name, value)
        yield "dynamodb://signals"


@pytest.mark.parametrize("scene", SCENES)
def test_in_memory(scene: Scene) -> None:
    run(scene(MemoryStore(), LEASE_S))


@needs_redis
@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
async def test_in_redis(scene: Scene, redis_url: str) -> None:
    store = open_store(redis_url, 60.0)
    await scene(store, LEASE_S)
    await store.close()


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
async def test_in_dynamodb(scene: Scene, dynamodb_url: str) -> None:
    store = open_store(dynamodb_url, 60.0)
    await scene(store, LEASE_S)
    await store.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://", "must be redis://HOST:PORT/0"),
        ("http://127.0.0.1", "must be redis://HOST:PORT/0"),
        ("redis://:secret@127.0.0.1:x/0", "--store=redis"),
        ("dynamodb://", "dynamodb://TABLE"),
        ("redis:secret", "--store=..."),
    ],
)
def test_what_is_no_store_is_one_line(url: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_store(url, 1.0)
    assert message in str(refused.value) and "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)
