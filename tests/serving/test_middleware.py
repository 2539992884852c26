"""The middleware in a real server process: signal, admission, control, transparency."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bellman.admission.accept_all import AcceptAll
from bellman.admission.breaker import Breaker
from bellman.admission.queue_limit import QueueLimit
from bellman.admission.tokens_per_minute import TokensPerMinute
from bellman.controllers.aimd import Aimd
from bellman.controllers.bellman import QueueLaw
from bellman.controllers.none import NoControl
from bellman.controllers.pi import Pi
from bellman.engines.base import Control, RequestFailed
from bellman.engines.openai.child import child_server
from bellman.engines.openai.control import control_node, put_control
from bellman.errors import RunError
from bellman.signal import HEADER
from tests.servers import MIDDLEWARE, MOCK, Mock, a_request, ignore

PERIOD_S = 0.02


async def control(mock: Mock, controller: Any = None, admission: Any = None) -> None:
    await put_control(
        mock.pool, mock.url, Control(controller or NoControl(), admission or AcceptAll(), PERIOD_S)
    )


async def congestion(mock: Mock) -> dict[str, Any]:
    async with mock.pool.get(f"{mock.url}/bellman/congestion") as response:
        assert response.status == 200
        value: dict[str, Any] = await response.json()
        return value


async def until_outstanding(mock: Mock, count: int) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            state = await congestion(mock)
            observation = state["observation"]
            if observation["running"] + observation["waiting"] == count:
                return state
            await asyncio.sleep(0.01)


async def test_the_level_follows_the_requests_in_flight(mock: Mock) -> None:
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000, places=4)
    await control(mock, QueueLaw(q_low=2, q_high=10, max_step=1.0))
    session = mock.session()
    tasks = [asyncio.create_task(session.generate(a_request(), ignore)) for _ in range(6)]
    await until_outstanding(mock, 6)
    async with asyncio.timeout(60):
        while (state := await congestion(mock))["level"] != 0.5:  # (6 - 2) / (10 - 2)
            await asyncio.sleep(PERIOD_S)
        # The gauges in the server's registry, read each period, split the six: four hold a place.
        while (state["observation"]["running"], state["observation"]["waiting"]) != (4, 2):
            await asyncio.sleep(PERIOD_S)
            state = await congestion(mock)
    assert state["controller"] == "QueueLaw"
    assert 0 <= state["age_s"] < 60
    assert (await session.state()).level == 0.5

    got: list[Sequence[str]] = []
    late = asyncio.create_task(session.generate(a_request(), got.append))
    async with asyncio.timeout(60):
        while not got:  # headers come although all places are taken and no token is due
            await asyncio.sleep(0.01)
    assert got in ([["0.5000"]], [["0.6250"]])
    for task in [*tasks, late]:
        task.cancel()
    await until_outstanding(mock, 0)
    async with asyncio.timeout(60):
        while (await congestion(mock))["level"] != 0.0:
            await asyncio.sleep(PERIOD_S)


async def test_a_law_on_the_queues_delay_hears_of_requests_without_a_place(mock: Mock) -> None:
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000, places=2)
    await control(mock, Pi(target_queue_delay_s=0.05, integral_gain=0.5, proportional_gain=0.0))
    session = mock.session()
    tasks = [asyncio.create_task(session.generate(a_request(), ignore)) for _ in range(2)]
    state = await until_outstanding(mock, 2)
    assert state["level"] == 0.0
    tasks.append(asyncio.create_task(session.generate(a_request(), ignore)))
    async with asyncio.timeout(60):
        while (state := await congestion(mock))["level"] != 1.0:
            await asyncio.sleep(PERIOD_S)
    assert state["observation"]["oldest_waiting_s"] > 0.05
    for task in tasks:
        task.cancel()
    await until_outstanding(mock, 0)


async def test_a_law_without_what_it_needs_publishes_no_level_and_says_what_lacks(
    mock: Mock,
) -> None:
    await mock.behave()
    await control(mock, Aimd(10.0, 0.1, 0.5, 0.25, 1.0))
    state = await congestion(mock)
    assert state["level"] is None
    assert state["reason"] == (
        "the law Aimd needs e2e_sum_s and e2e_count, which this engine does not report: choose "
        "another law, or an engine with such metrics (vLLM)"
    )
    assert state["observation"]["running"] == 0  # the load is known none the less
    async with mock.pool.post(f"{mock.url}/v1/chat/completions", json={}) as response:
        assert response.status == 200
        assert HEADER not in response.headers


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "behaviour", [{}, {"refuse_every": 1}, {"refuse_every": 1, "refuse_status": 400}]
)
async def test_every_answer_carries_the_level_once(
    mock: Mock, stream: bool, behaviour: dict[str, Any]
) -> None:
    await mock.behave(headers=[[HEADER, "0.9"]], **behaviour)  # the server's own is replaced
    await control(mock)
    url = f"{mock.url}/v1/chat/completions"
    async with mock.pool.post(url, json={"stream": stream}) as response:
        assert response.status == behaviour.get("refuse_status", 429 if behaviour else 200)
        assert response.headers.getall(HEADER) == ["0.0000"]
        await response.read()


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/nowhere", "/bellman/congestion"])
async def test_other_paths_carry_it_too(mock: Mock, path: str) -> None:
    async with mock.pool.get(f"{mock.url}{path}") as response:
        assert response.headers.getall(HEADER) == ["0.0000"]


async def test_an_exception_in_the_server_is_an_error_with_the_level(mock: Mock) -> None:
    await mock.behave(raises=True)
    url = f"{mock.url}/v1/chat/completions"
    async with mock.pool.post(url, json={"stream": True}) as response:
        assert response.status == 500
        assert response.headers.getall(HEADER) == ["0.0000"]
        assert (await response.json())["error"]["message"] == "the mock was told to raise"
    await until_outstanding(mock, 0)


async def test_a_cut_stream_stays_cut_and_is_counted_out(mock: Mock) -> None:
    await mock.behave(cut_after=2)
    with pytest.raises(RequestFailed, match="connection failed"):
        await mock.session().generate(a_request(), ignore)
    await until_outstanding(mock, 0)


async def test_a_stream_is_not_collected(mock: Mock) -> None:
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000)
    url = f"{mock.url}/v1/chat/completions"
    async with mock.pool.post(url, json={"stream": True}) as response:
        async for line in response.content:
            if b'"content": "a"' in line:
                break  # the first piece is here, and the stream goes on
        await until_outstanding(mock, 1)
    await until_outstanding(mock, 0)


async def test_a_client_that_leaves_is_cancelled_through_the_middleware(mock: Mock) -> None:
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000)
    task = asyncio.create_task(mock.session().generate(a_request(), ignore))
    await until_outstanding(mock, 1)
    task.cancel()
    await until_outstanding(mock, 0)
    assert (await mock.counts())["cancelled"] == 1


async def test_admission_refuses_at_the_door(mock: Mock) -> None:
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000)
    await control(mock, admission=QueueLimit(limit=3))
    session = mock.session()
    tasks = [asyncio.create_task(session.generate(a_request(), ignore)) for _ in range(3)]
    await until_outstanding(mock, 3)
    got: list[Sequence[str]] = []
    with pytest.raises(RequestFailed, match="HTTP 503: queue limit: 3 outstanding") as failure:
        await session.generate(a_request(), got.append)
    assert failure.value.status == "rejected"
    assert (failure.value.http_status, failure.value.retry_after_s) == (503, None)
    assert got == [["0.0000"]]
    assert (await congestion(mock))["refused_total"] == 1
    assert (await mock.counts())["requests"] == 3
    async with mock.pool.get(f"{mock.url}/v1/models") as response:
        assert response.status == 200  # only generation is gated
    for task in tasks:
        task.cancel()
    await until_outstanding(mock, 0)
    await control(mock)
    assert (await congestion(mock))["refused_total"] == 0


async def test_tokens_per_minute_are_refused_with_the_time_to_come_again(mock: Mock) -> None:
    await mock.behave(chunks=["a"])
    # "Summarize." has 10 characters: 3 tokens as the door estimates them, + 100 of max_tokens.
    await control(mock, admission=TokensPerMinute(250))
    session = mock.session()
    for _ in range(2):
        await session.generate(a_request(), ignore)
    with pytest.raises(RequestFailed, match=r"HTTP 429: 206 \+ 103 tokens in a minute") as failure:
        await session.generate(a_request(), ignore)
    assert (failure.value.status, failure.value.http_status) == ("rejected", 429)
    assert failure.value.retry_after_s is not None and 30 <= failure.value.retry_after_s <= 60
    async with mock.pool.post(f"{mock.url}/v1/completions", json={"max_tokens": 300}) as response:
        assert response.status == 429 and "Retry-After" not in response.headers
        assert (await response.json())["error"]["type"] == "RateLimitError"
    await control(mock)


async def test_a_breaker_hears_how_answers_end(mock: Mock) -> None:
    breaker = Breaker(AcceptAll(), failures=1.0, least_requests=2, window_s=600, open_s=600)
    await control(mock, admission=breaker)
    session = mock.session()
    await mock.behave(chunks=["a"])
    await session.generate(a_request(), ignore)
    await mock.behave(refuse_every=1, refuse_status=500)
    for _ in range(2):
        with pytest.raises(RequestFailed, match="HTTP 500"):
            await session.generate(a_request(), ignore)
    await mock.behave(chunks=["a"])
    await session.generate(a_request(), ignore)  # one of four was good: it is closed
    await control(mock, admission=breaker)
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000)
    for left in range(1, 3):
        task = asyncio.create_task(session.generate(a_request(), ignore))
        await until_outstanding(mock, 1)
        task.cancel()
        await until_outstanding(mock, 0)
        assert (await congestion(mock))["refused_total"] == 0, left
    with pytest.raises(RequestFailed, match="HTTP 503: circuit breaker: open") as failure:
        await session.generate(a_request(), ignore)
    assert failure.value.retry_after_s is not None and 500 <= failure.value.retry_after_s <= 600
    await control(mock)


async def test_a_new_arm_starts_its_law_afresh(mock: Mock) -> None:
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000)
    slow = QueueLaw(q_low=0, q_high=1, max_step=0.001)
    await control(mock, slow)
    task = asyncio.create_task(mock.session().generate(a_request(), ignore))
    async with asyncio.timeout(60):
        while (reached := (await congestion(mock))["level"]) < 0.005:
            await asyncio.sleep(PERIOD_S)
        # One request is out all the time: no level falls but by starting again from 0. On a slow
        # machine it may have risen again before it is seen; then it is started once more.
        await control(mock, slow)
        while (await congestion(mock))["level"] >= reached:
            await control(mock, slow)
    task.cancel()
    await until_outstanding(mock, 0)


async def test_what_may_not_be_switched(mock: Mock) -> None:
    url = f"{mock.url}/bellman/control"
    async with mock.pool.put(url, data=b"{") as response:
        assert response.status == 400
    node = {"controller": {"_target_": "subprocess.Popen"}}
    async with mock.pool.put(url, json=node) as response:
        assert response.status == 400
        assert "bellman.controllers" in (await response.json())["error"]["message"]
    async with mock.pool.get(url) as response:
        assert response.status == 405


async def test_without_permission_nothing_is_switched(mock: Mock) -> None:
    none = Control(NoControl(), AcceptAll(), 1.0)
    environment = {"BELLMAN_CONTROL_ALLOWED": "0"}
    async with child_server([MOCK, "--middleware", MIDDLEWARE], environment) as url:
        with pytest.raises(RunError, match="BELLMAN_CONTROL_ALLOWED=1"):
            await put_control(mock.pool, url, none)


async def test_several_server_processes_share_their_gauges(mock: Mock, tmp_path: Any) -> None:
    environment = {"BELLMAN_CONTROL_ALLOWED": "1", "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    async with child_server([MOCK, "--middleware", MIDDLEWARE], environment) as url:
        other = Mock(mock.pool, url)
        async with mock.pool.put(f"{url}/bellman/control", json=control_node(none())) as response:
            assert response.status == 409
            assert "--api-server-count 1" in await response.text()
        assert (await congestion(other))["observation"]["waiting"] == 0


def none() -> Control:
    return Control(NoControl(), AcceptAll(), 1.0)
