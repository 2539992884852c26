"""GET /bellman/metrics keeps to Prometheus' conventions, and has all that the dashboard shows."""

import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from tests.deploy.dashboard import names
from tests.servers import MOCK
from tests.store.gateways import Gateway, a_gateway, until
from tests.store.servers import needs_redis, redis_server

pytestmark = [pytest.mark.slow, needs_redis]
ZONE = "intel-rapl:0"
PATCH = """
import bellman.energy.auto as auto
from functools import partial
auto.RaplEnergy = partial(auto.RaplEnergy, powercap={powercap!r})
"""


@pytest.fixture
async def pool() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_pool(None) as pool:
        yield pool


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    """Return the file of a package's energy, as Linux's powercap has it."""
    zone = tmp_path / "powercap" / ZONE
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("1000000000000\n")
    (zone / "energy_uj").write_text("0\n")
    return zone / "energy_uj"


def advance(counter: Path, microjoules: int) -> None:
    """Count on in one step: a file that is written in place is empty for an instant."""
    following = counter.with_name("next")
    following.write_text(f"{int(counter.read_text()) + microjoules}\n")
    following.replace(counter)


@pytest.fixture
async def gateway(counter: Path, tmp_path: Path) -> AsyncIterator[Gateway]:
    patch = PATCH.format(powercap=str(counter.parents[1]))
    with redis_server(tmp_path) as redis:
        async with child_server([MOCK]) as upstream:
            arguments = ["--upstream", f"one={upstream}", "--store", redis.url, "--energy"]
            with a_gateway(tmp_path, arguments, patch=patch) as gateway:
                yield gateway


async def test_what_it_says(gateway: Gateway, counter: Path, pool: aiohttp.ClientSession) -> None:
    for number in range(12):
        body = {"stream": number % 2 == 0, "min_tokens": 2}
        async with pool.post(f"{gateway.url}/v1/chat/completions", json=body) as answer:
            assert answer.status == 200
            await answer.read()

    async def told(name: str) -> float | None:
        advance(counter, 1000)  # a counter always moves
        return (await gateway.metrics(pool)).get(name)

    await until(lambda: told("bellman_requests_total"), 12)
    await until(lambda: told("bellman_congestion_level"), 0)

    async def counted(above_j: float, below_j: float) -> bool:
        energy_j = await told("bellman_energy_joules_total")
        return energy_j is not None and above_j < energy_j < below_j

    await until(lambda: counted(0, 5), True)  # from now on the counter is read
    advance(counter, 25_000_000)
    await until(lambda: counted(25, 30), True)
    metrics = await gateway.metrics(pool)
    assert metrics["bellman_request_duration_seconds_count"] == 12
    assert metrics["bellman_time_to_first_byte_seconds_count"] == 12
    assert metrics["bellman_requests_in_flight"] == metrics["bellman_requests_refused_total"] == 0
    assert (metrics["bellman_lease_held"], metrics["bellman_store_up"]) == (1, 1)
    assert names() - metrics.keys() == set()

    async with pool.get(f"{gateway.url}/bellman/metrics") as answer:
        assert answer.content_type == "text/plain"
        text = await answer.text()
    for family in text_string_to_metric_families(text):
        assert re.fullmatch(r"bellman_[a-z_]+", family.name)
        assert family.documentation and family.type in ("counter", "gauge", "histogram")
        assert family.type != "counter" or family.samples[0].name.endswith("_total")
        named_by = {"host"} if family.name == "bellman_energy_joules" else {"endpoint"}
        assert all(named_by <= sample.labels.keys() for sample in family.samples)
    if shutil.which("promtool") is not None:
        done = subprocess.run(
            ["promtool", "check", "metrics"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
