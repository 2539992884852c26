"""GET /bellman/congestion as an application reads it: what a server says is checked first."""

import json
from typing import Any

import pytest

from bellman.engines.base import ServerState
from bellman.engines.openai.connections import open_pool
from bellman.engines.openai.control import read_state
from bellman.sensing.observation import Observation
from bellman.signal import SignalReceiver
from tests.servers import raw_server

OBSERVATION = {"time_s": 8.5, "waiting": 3, "running": 4, "kv_usage": 0.25}


async def state_of(body: bytes, head: str = "HTTP/1.1 200 OK\r\n") -> ServerState | None:
    async def answer(reader: Any, writer: Any) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()

    async with raw_server(answer) as url, open_pool(None) as pool:
        return await read_state(pool, url)


def said(**changes: Any) -> bytes:
    return json.dumps({"level": 0.5, "age_s": 1, "observation": OBSERVATION} | changes).encode()


async def test_a_good_answer() -> None:
    state = await state_of(said())
    assert state == ServerState(Observation(8.5, 3, 4, kv_usage=0.25), 0.5, 1.0)
    assert state.level_values == ["0.5000"]


async def test_delays_are_seconds_and_counts() -> None:
    delays = {"oldest_waiting_s": 0.5, "e2e_sum_s": 61.25, "e2e_count": 3, "ttft_sum_s": None}
    state = await state_of(said(observation=OBSERVATION | delays))
    assert state is not None
    assert state.observation == Observation(
        8.5, 3, 4, kv_usage=0.25, oldest_waiting_s=0.5, e2e_sum_s=61.25, e2e_count=3
    )


async def test_no_level_is_absent_and_still_an_answer() -> None:
    state = await state_of(said(level=None, observation=None))
    assert state == ServerState(None, None, 1.0)
    assert state.level_values == []


@pytest.mark.parametrize(
    "level",
    [
        *("true", "false", '"0.5"', "NaN", "Infinity", "-Infinity", "1e400", "2", "-0.1", "1.0001"),
        *("[0.5]", '{"level": 0.5}', '""', "1" + "0" * 400),
    ],
)
async def test_a_level_that_is_none_is_counted_as_malformed(level: str) -> None:
    state = await state_of(said(level=None).replace(b'"level": null', f'"level": {level}'.encode()))
    assert state is not None and state.level is None
    receiver = SignalReceiver()
    receiver.receive(state.level_values, 1.0)
    assert (receiver.last, receiver.malformed, receiver.absent) == (None, 1, 0)


@pytest.mark.parametrize("age_s", [True, "1", float("nan"), float("inf"), -1, [], 1e300])
async def test_an_age_that_is_none_is_unknown(age_s: Any) -> None:
    assert await state_of(said(age_s=age_s)) == ServerState(
        Observation(8.5, 3, 4, kv_usage=0.25), 0.5, None
    )


@pytest.mark.parametrize(
    "change",
    [
        *({"running": value} for value in (None, True, "4", 4.5, -1, float("nan"), 1e300, [4])),
        *({"kv_usage": value} for value in (True, "0.5", 1.5, -0.1, float("nan"), float("inf"))),
        *({"time_s": value} for value in (None, True, "8", -1, float("inf"))),
        *({"completed_total": value} for value in ("1", -1, 0.5, False)),
        {"outstanding_tokens": -1},
        *({"e2e_sum_s": value} for value in ("1", -0.5, float("nan"))),
        *({"ttft_count": value} for value in (0.5, -1)),
    ],
)
async def test_an_observation_with_a_number_that_is_none_is_unknown(change: dict[str, Any]) -> None:
    state = await state_of(said(observation=OBSERVATION | change))
    assert state == ServerState(None, 0.5, 1.0)


@pytest.mark.parametrize("observation", [[], "idle", 7, True])
async def test_an_observation_that_is_no_object_is_unknown(observation: Any) -> None:
    assert await state_of(said(observation=observation)) == ServerState(None, 0.5, 1.0)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"{}", b"[" * 100_000, b'{"level": ' + b"9" * 5000 + b"}", b"\xff"],
)
async def test_what_is_no_answer(body: bytes) -> None:
    assert await state_of(body) is None


async def test_an_answer_without_end_is_none() -> None:
    assert await state_of(b'{"level": 0.5, "x": "' + b"x" * 2_000_000 + b'"}') is None


async def test_a_redirect_is_not_followed() -> None:
    assert await state_of(b"", "HTTP/1.1 307 No\r\nLocation: /bellman/congestion\r\n") is None
