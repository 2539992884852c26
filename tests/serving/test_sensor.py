"""How the door's count and the engine's gauges become one observation."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.sensing.failure import SensorFailed
from bellman.sensing.observation import Observation
from bellman.serving.metrics import Reported
from bellman.serving.sensor import Sensor
from bellman.virtual_time import VirtualTimeLoop


async def observed(engine: Reported, in_flight: int, shared: bool = False) -> Observation:
    sensor = Sensor(lambda: engine, shared)
    for _ in range(in_flight):
        sensor.enter()
    return sensor.sense()


@pytest.mark.parametrize(
    ("running", "waiting", "in_flight", "shared", "expected"),
    [
        (4, 3, 7, False, (4, 3)),
        (4, 0, 7, False, (4, 3)),  # three are not at the engine's scheduler yet
        (4, 3, 2, False, (2, 0)),  # the gauges are a step behind
        (5, 0, 0, False, (0, 0)),  # ... or keep the last step's values
        (4, 3, 2, True, (4, 3)),  # further doors: the engine knows more than this one
        (4, 3, 9, True, (4, 5)),
        (None, None, 6, False, (6, 0)),
    ],
)
async def test_split(
    running: int | None,
    waiting: int | None,
    in_flight: int,
    shared: bool,
    expected: tuple[int, int],
) -> None:
    observation = await observed(Reported(running, waiting), in_flight, shared)
    assert (observation.running, observation.waiting) == expected


counts = st.integers(0, 1000)


@given(running=counts, waiting=counts, in_flight=counts, shared=st.booleans())
async def test_q_is_the_doors_count_or_the_larger(
    running: int, waiting: int, in_flight: int, shared: bool
) -> None:
    observation = await observed(Reported(running, waiting), in_flight, shared)
    q = max(in_flight, running + waiting) if shared else in_flight
    assert observation.outstanding == q
    assert min(observation.running, observation.waiting) >= 0
    assert observation.running <= running


@pytest.mark.parametrize(
    ("engine", "shared", "missing"),
    [
        (Reported(), True, "running and waiting"),
        (Reported(running=3), True, "waiting"),
        (Reported(waiting=3), False, "running"),
        (Reported(kv_usage=0.5), False, "running and waiting"),
    ],
)
async def test_half_a_report_is_none(engine: Reported, shared: bool, missing: str) -> None:
    with pytest.raises(SensorFailed, match=f"does not report its {missing} requests"):
        await observed(engine, 1, shared)


async def test_after_a_failure_the_door_alone_is_known() -> None:
    reports = iter([Reported(4, 3), KeyError("a file that went away")])

    def read() -> Reported:
        report = next(reports)
        if isinstance(report, Exception):
            raise report
        return report

    sensor = Sensor(read, shared=True)
    sensor.enter()
    assert sensor.sense().outstanding == 7
    with pytest.raises(SensorFailed, match="a file that went away"):
        sensor.sense()
    assert sensor.observe().outstanding == 1


async def test_what_is_not_reported_stays_none() -> None:
    observation = await observed(Reported(), 1)
    assert observation.kv_usage is None
    assert observation.generated_tokens_total is None


def test_the_oldest_that_waits_is_the_first_that_does_not_run() -> None:
    """Four come, a second apart; the engine runs two of them, and the second leaves."""
    report = Reported(running=2, waiting=2)

    async def main() -> list[float | None]:
        sensor = Sensor(lambda: report, shared=False)
        ages: list[float | None] = [sensor.sense().oldest_waiting_s]
        requests = []
        for _ in range(4):
            requests.append(sensor.enter())
            await asyncio.sleep(1)
            ages.append(sensor.sense().oldest_waiting_s)
        sensor.leave(requests[1])
        ages.append(sensor.sense().oldest_waiting_s)
        return ages

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(main()) == pytest.approx([0, 0, 0, 1, 2, 1])


@pytest.mark.parametrize(
    ("engine", "shared"), [(Reported(), False), (Reported(running=1, waiting=3), True)]
)
async def test_who_waits_is_unknown_without_a_gauge_or_with_further_doors(
    engine: Reported, shared: bool
) -> None:
    assert (await observed(engine, 4, shared)).oldest_waiting_s is None
