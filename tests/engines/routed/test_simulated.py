"""Two simulated engines as one: requests, signal and energy, with known answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bellman.admission.queue_limit import QueueLimit
from bellman.attempts.log import AttemptLog
from bellman.controllers.bellman import QueueLaw
from bellman.engines.base import Control, Request, RequestFailed
from bellman.engines.routed.engine import RoutedEngine, RunningRoutedEngine
from bellman.engines.routed.session import RoutedSession
from bellman.engines.routed.spillover import Spillover
from bellman.errors import ConfigError
from bellman.records import AttemptRecord
from tests.app.served import lines, record
from tests.engines.simulated.test_simulated_engine import TenWords, configured


def run(scenario: Callable[[RoutedSession], Awaitable[Any]]) -> list[AttemptRecord]:
    """Run a scenario on two engines of which each takes two requests; return the attempts."""
    engines = {name: configured().with_bank(TenWords()) for name in ("first", "spare")}
    engine = RunningRoutedEngine(engines, Spillover())
    attempts: list[AttemptRecord] = []

    async def episode() -> None:
        control = Control(QueueLaw(q_low=0, q_high=2, max_step=1), QueueLimit(2), 1.0)
        async with engine, engine.session(control) as session:
            session.log = AttemptLog(attempts.append, 0, "arm", "simulated")
            await scenario(session)

    with asyncio.Runner(loop_factory=engine.loop_factory) as runner:
        runner.run(episode())
    return attempts


def numbered(number: int, asked_words: int = 800) -> Request:
    return Request(number, "d", "", asked_words, max_tokens=900, prompt_tokens=500)


def test_the_fifth_of_five_at_once_is_refused_by_both() -> None:
    headers: list[Sequence[str]] = []

    async def scenario(session: RoutedSession) -> None:
        tasks = [
            asyncio.create_task(session.generate(numbered(number), headers.append))
            for number in range(5)
        ]
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(result, RequestFailed) for result in results] == [False] * 4 + [True]

    attempts = run(scenario)
    told = [(one.request_id, one.attempt, one.replica, one.status) for one in attempts]
    assert [entry for entry in told if entry[0] < 2] == [
        (0, 1, "first", "ok"),
        (1, 1, "first", "ok"),
    ]
    for number, status in ((2, "ok"), (3, "ok"), (4, "rejected")):
        assert [entry[1:] for entry in told if entry[0] == number] == [
            (1, "first", "rejected"),
            (2, "spare", status),
        ]
    refused = [one for one in attempts if one.status == "rejected"]
    assert {one.http_status for one in refused} == {503}
    assert len(headers) == 5  # of the first alone, though three were answered by, or asked of, both


def test_the_application_hears_the_first_ones_level_alone() -> None:
    headers: list[Sequence[str]] = []

    async def scenario(session: RoutedSession) -> None:
        tasks = [
            asyncio.create_task(session.generate(numbered(number), headers.append))
            for number in range(3)
        ]
        await asyncio.sleep(1.5)  # the laws ran at 1 s: the first has two requests, the spare one
        states = await session.states()
        assert [states[name].level for name in ("first", "spare")] == [1.0, 0.5]
        state = await session.state()
        assert state.level == 1.0
        assert state.observation is not None and state.observation.outstanding == 3
        headers.clear()
        tasks.append(asyncio.create_task(session.generate(numbered(3), headers.append)))
        await asyncio.gather(*tasks)
        assert headers == [["1.0000"]]

    run(scenario)


def test_a_cancelled_request_leaves_both_engines() -> None:
    async def scenario(session: RoutedSession) -> None:
        tasks = [
            asyncio.create_task(session.generate(numbered(number), lambda _: None))
            for number in range(4)
        ]
        await asyncio.sleep(0.5)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(1.0)
        state = await session.state()
        assert state.observation is not None and state.observation.outstanding == 0

    run(scenario)


def test_the_energy_is_that_of_both_and_an_idle_spare_draws_its_idle_power() -> None:
    idle_w = configured().profile.energy.idle_w

    async def scenario(session: RoutedSession) -> None:
        meter = session.energy_meter()
        assert meter is not None
        await meter.start()
        await session.generate(numbered(0), lambda _: None)
        await asyncio.sleep(10.0)
        reading = await meter.read()
        assert reading.replicas_j is not None
        first_j, spare_j = (reading.replicas_j[name] for name in ("first", "spare"))
        assert first_j is not None and spare_j is not None
        assert spare_j == pytest.approx(idle_w * reading.time_s)
        assert first_j > spare_j
        assert reading.energy_j == pytest.approx(first_j + spare_j)
        report = await meter.stop()
        assert (report.method, report.source) == ("modelled", "simulated")
        assert set(report.details) == {"first", "spare"}

    run(scenario)


def test_a_run_tells_the_replicas_apart(tmp_path: Path) -> None:
    overrides = ["arm=[none,spillover]", "arms.spillover.admission.limit=20"]
    requests = record(tmp_path / "run", [n / 40 for n in range(100)], overrides, "spillover")
    assert {line["replica"] for line in requests if line["attempts"] == 1} == {"first"}
    assert {line["replica"] for line in requests if line["attempts"] == 2} == {"spare"}
    ticks, parts = lines(tmp_path / "run", "timeline"), lines(tmp_path / "run", "replicas")
    assert len(parts) == 2 * len(ticks)
    assert {tick["replica"] for tick in ticks} == {None}
    for tick, first, spare in zip(ticks, parts[::2], parts[1::2], strict=True):
        assert (first["replica"], spare["replica"]) == ("first", "spare")
        assert tick["time_s"] == first["time_s"] == spare["time_s"]
        for name in ("waiting", "running", "generated_tokens_total"):
            assert tick[name] == first[name] + spare[name]
        assert tick["energy_j"] == pytest.approx(first["energy_j"] + spare["energy_j"])
        assert (tick["level"], tick["power_w"] is None) == (
            first["level"],
            first["power_w"] is None,
        )


@pytest.mark.parametrize(
    ("engines", "key"),
    [
        ({"first": configured()}, "engines"),
        ({"first": configured(), "spare": 3}, "engines.spare"),
    ],
)
def test_what_is_refused(engines: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        RoutedEngine(engines, Spillover())
    with pytest.raises(ConfigError, match="route"):
        RoutedEngine({"first": configured(), "spare": configured()}, 3)
