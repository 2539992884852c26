"""Whole measured runs of `run.py` against two mock servers: one refuses, the other answers."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import pytest_asyncio

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from tests.servers import MOCK, Mock, run_experiment

pytestmark = pytest.mark.slow

SECOND = "bellman.engines.openai.engine.OpenAIEngine"


@pytest_asyncio.fixture
async def mocks() -> AsyncIterator[tuple[Mock, Mock]]:
    async with open_pool(None) as pool, child_server([MOCK]) as one, child_server([MOCK]) as other:
        yield Mock(pool, one), Mock(pool, other)


async def run(mock: Mock, folder: Path, *overrides: str) -> tuple[Any, Any]:
    """Run the experiment, about 20 requests an arm; return its requests and attempts."""
    await run_experiment(
        *("experiment=summarize_congested", "engine=openai", "repeats=1", "energy=none"),
        *(f"engine.base_url={mock.url}/v1", f"folder={folder}", "arrivals.capacity_rps=4"),
        *("arrivals.warmup_s=0", "arrivals.calm_s=1", "arrivals.congested_s=3"),
        *("arrivals.recovery_s=1", "pacing.stall_s=10", "pacing.lag_p99_s=10"),
        *overrides,
    )
    return tuple(pd.read_parquet(folder / f"{name}.parquet") for name in ("requests", "attempts"))


async def test_what_the_first_server_refuses_the_second_answers(
    mocks: tuple[Mock, Mock], tmp_path: Path
) -> None:
    first, second = mocks
    await first.behave(refuse_every=1, refuse_status=503)
    await second.behave(obeys=True)
    spare = f"{{_target_: {SECOND}, base_url: '{second.url}'}}"
    requests, attempts = await run(
        first,
        tmp_path / "run",
        "arm=[none,spillover]",
        f"arms.spillover.engine.engines.spare={spare}",
    )
    none, spillover = (requests[requests.arm == arm] for arm in ("none", "spillover"))
    assert set(none.status) == {"rejected"}
    assert none.attempts.isna().all() and none.replica.isna().all()
    assert set(spillover.status) == {"ok"}
    assert set(spillover.replica) == {"spare"} and set(spillover.attempts) == {2}
    assert len(attempts) == 2 * len(spillover)
    told = attempts.groupby(["replica", "status"]).http_status.agg(["size", "first"])
    assert told.loc["first", "rejected"].tolist() == [len(spillover), 503]
    assert told.loc["spare", "ok"]["size"] == len(spillover)
    assert (await second.counts())["requests"] == len(spillover)


async def test_a_client_that_was_refused_asks_again_when_it_may(
    mocks: tuple[Mock, Mock], tmp_path: Path
) -> None:
    mock, _ = mocks
    await mock.behave(obeys=True, refuse_every=2, headers=[["Retry-After", "1"]])
    requests, attempts = await run(
        mock,
        tmp_path / "run",
        *("arm=[none,tpm_retry]", "arms.tpm_retry.client.first_wait_s=0.5"),
        "arms.tpm_retry.client.attempts=20",
    )
    none, retrying = (requests[requests.arm == arm] for arm in ("none", "tpm_retry"))
    assert set(none.status) == {"ok", "rejected"}
    assert set(retrying.status) == {"ok"}
    assert len(attempts) == retrying.attempts.sum() > len(retrying)
    refused = attempts[attempts.status == "rejected"]
    assert set(refused.http_status) == {429} and set(refused.retry_after_s) == {1.0}
    for _, own in attempts.groupby("request_id"):
        ordered = own.sort_values("attempt")
        waits_s = ordered.sent_s.to_numpy()[1:] - ordered.ended_s.to_numpy()[:-1]
        assert (waits_s >= 1.0).all()
    again = retrying[retrying.attempts > 1]
    assert (again.last_token_s - again.intended_s >= again.attempts - 1).all()


async def test_the_gateways_tokens_per_minute_are_waited_for(
    mocks: tuple[Mock, Mock], tmp_path: Path
) -> None:
    """The limit is the gateway's own; a client that would have to wait too long gives up."""
    mock, _ = mocks
    await mock.behave(obeys=True)
    requests, attempts = await run(
        mock,
        tmp_path / "run",
        *("arm=[none,tpm_retry]", "arms.tpm_retry.admission.tokens=20000"),
        "request_timeout_s=5",
    )
    retrying = requests[requests.arm == "tpm_retry"]
    refused = retrying[retrying.status == "rejected"]
    assert 0 < len(refused) < len(retrying)
    assert refused.reason.str.contains("tokens in a minute, limit 20000").all()
    assert set(refused.attempts) == {1}
    waits_s = attempts[attempts.status == "rejected"].retry_after_s
    assert ((waits_s > 5) & (waits_s <= 60)).all()
