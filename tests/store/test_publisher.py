"""Gateways that share a level through a store that is slow, gone and back, in virtual time."""

import asyncio
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellman.controllers.base import Level
from bellman.store.base import Seat
from bellman.store.memory import MemorySeat, MemoryStore
from bellman.store.publisher import LEASE_PERIODS, LOOKS, STALE_PERIODS, SharedPublisher
from bellman.virtual_time import run
from tests.store.publishers import LAW, PERIOD_S, SLOW_LAW, Gateway, Line, scene


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message.partition(":")[0] for record in caplog.records]


@scene()
async def test_one_runs_the_law_on_the_requests_of_all(gateways: list[Gateway], _: Any) -> None:
    assert [gateway.publisher.token is not None for gateway in gateways] == [True, False]
    assert [gateway.level for gateway in gateways] == [0.2, 0.2]
    assert [gateway.sensor.observe().outstanding for gateway in gateways] == [20, 20]
    gateways[1].load(60)
    # The count goes up within a period, the level comes down within another.
    await asyncio.sleep(2 * PERIOD_S)
    assert [gateway.level for gateway in gateways] == [0.7, 0.7]


@scene()
async def test_a_change_that_the_holder_saw_is_everywhere_within_a_look(
    gateways: list[Gateway], _: Any
) -> None:
    gateways[0].load(50)
    while gateways[0].level != 0.6:
        await asyncio.sleep(0.01)
    await asyncio.sleep(PERIOD_S / LOOKS + 0.01)
    assert gateways[1].level == 0.6


@pytest.mark.parametrize("apart_s", [0.0, 0.1, 0.249, 0.26, 0.5, 0.9, 0.999])
def test_no_level_is_older_than_a_period_and_a_look(
    apart_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    @scene(laws=SLOW_LAW, count=3, apart_s=apart_s)
    async def ages(gateways: list[Gateway], _: Any) -> None:
        loop = asyncio.get_running_loop()
        oldest_s = [0.0] * len(gateways)
        published = len(gateways[0].line.published)
        for _ in range(1000):
            await asyncio.sleep(0.01 * PERIOD_S)
            for number, gateway in enumerate(gateways):
                signal = gateway.publisher.signal
                assert signal is not None
                oldest_s[number] = max(oldest_s[number], loop.time() - signal.time_s)
        assert oldest_s[0] <= 1.001 * PERIOD_S
        assert max(oldest_s) <= (1 + 1 / LOOKS) * PERIOD_S + 0.001
        # The law runs once a period all the same, and nobody else's does.
        assert len(gateways[0].line.published) - published == 10
        assert [gateway.line.published for gateway in gateways[1:]] == [[], []]

    ages(caplog)


@scene(laws=SLOW_LAW)
async def test_a_killed_holder_is_replaced_and_its_law_goes_on(
    gateways: list[Gateway], caplog: pytest.LogCaptureFixture
) -> None:
    for gateway in gateways:
        gateway.load(100)
    await asyncio.sleep(4 * PERIOD_S)
    before = gateways[1].level
    assert before is not None and before > 0.3
    gateways[0].kill()
    for _ in range(70):  # while the lease lasts and after it, the level is there and moves on
        await asyncio.sleep(0.1 * PERIOD_S)
        level = gateways[1].level
        assert level is not None and level > before - 0.11
    assert gateways[1].publisher.token == 2
    assert gateways[1].sensor.elsewhere == 0
    assert gateways[1].level == 1.0 or (level is not None and level > before + 0.1)
    assert said(caplog) == []


@scene()
async def test_one_that_leaves_is_replaced_within_a_period(gateways: list[Gateway], _: Any) -> None:
    await gateways[0].stop()
    assert gateways[0].level is None
    await asyncio.sleep(PERIOD_S)
    assert (gateways[1].publisher.token, gateways[1].level) == (2, 0.1)


@scene()
async def test_a_level_in_the_store_that_is_none_is_no_header_and_is_written_over(
    gateways: list[Gateway], _: Any
) -> None:
    seat = gateways[1].line.seat
    assert isinstance(seat, MemorySeat)
    for level in (7.0, -0.1, math.nan, math.inf):
        seat.shared.published = (level, "{}", asyncio.get_running_loop().time())
        await gateways[1].publisher.update(PERIOD_S)
        assert gateways[1].publisher.header is None
        assert gateways[1].publisher.reason == "no gateway publishes a level"
        await asyncio.sleep(2 * PERIOD_S)
        assert [gateway.publisher.header for gateway in gateways] == ["0.2000"] * 2


@scene()
async def test_a_store_that_is_gone_is_told_once_and_leaves_no_level(
    gateways: list[Gateway], caplog: pytest.LogCaptureFixture
) -> None:
    for gateway in gateways:
        gateway.line.error = ConnectionRefusedError("refused")
    await asyncio.sleep((STALE_PERIODS - 1) * PERIOD_S)
    assert [gateway.level for gateway in gateways] == [0.2, 0.2]  # old, and it says so
    await asyncio.sleep(2 * PERIOD_S)
    for gateway in gateways:
        assert gateway.level is None and gateway.publisher.header is None
        assert gateway.publisher.reason == "the signal store: ConnectionRefusedError: refused"
        assert (gateway.publisher.store_outages, gateway.publisher.outages) == (1, 1)
        assert gateway.sensor.elsewhere == 0
    assert said(caplog) == ["the signal store"] * 2
    for gateway in gateways:
        gateway.line.error = None
    await asyncio.sleep(3 * PERIOD_S)
    assert [gateway.level for gateway in gateways] == [0.2, 0.2]
    assert said(caplog)[2:].count("the signal store answers again") == 2
    assert len(said(caplog)) == 6  # and that there is a level again


@scene()
async def test_a_slow_store_makes_the_level_older_and_then_none(
    gateways: list[Gateway], _: Any
) -> None:
    for gateway in gateways:
        gateway.line.delay_s = 0.4 * PERIOD_S
    await asyncio.sleep(4 * PERIOD_S)
    assert [gateway.level for gateway in gateways] == [0.2, 0.2]
    for gateway in gateways:
        gateway.line.delay_s = math.inf
    await asyncio.sleep((STALE_PERIODS + 1) * PERIOD_S)
    assert [gateway.level for gateway in gateways] == [None, None]
    assert gateways[0].publisher.reason == "the signal store: no answer within 3 s"


@scene()
async def test_one_cut_off_alone_loses_the_level_and_the_others_keep_it(
    gateways: list[Gateway], _: Any
) -> None:
    gateways[0].line.error = TimeoutError()  # the holder
    await asyncio.sleep((STALE_PERIODS + 2) * PERIOD_S)
    assert [gateway.level for gateway in gateways] == [None, 0.1]
    gateways[0].line.error = None
    await asyncio.sleep(2 * PERIOD_S)
    assert [gateway.level for gateway in gateways] == [0.2, 0.2]
    assert [gateway.publisher.token for gateway in gateways] == [None, 2]


@scene()
async def test_a_publication_in_flight_when_the_lease_passes_on_is_void(
    gateways: list[Gateway], _: Any
) -> None:
    """A holder that is stopped between its exchange and its publication, and wakes up."""
    paused = gateways[0]
    paused.load(90)
    paused.line.seat = Slow(paused.line.seat)
    await asyncio.sleep((LEASE_PERIODS + 3) * PERIOD_S)
    assert paused.line.published[-1] == (1, False)
    assert [gateway.publisher.token for gateway in gateways] == [None, 2]


class Deaf(Line):
    """A line whose client loses a cancellation while it waits."""

    async def _pass(self) -> None:
        try:
            await asyncio.sleep(0.2 * PERIOD_S)
        except asyncio.CancelledError:
            await asyncio.sleep(0.2 * PERIOD_S)


@scene()
async def test_it_ends_though_the_stores_client_loses_the_cancellation(
    gateways: list[Gateway], _: Any
) -> None:
    ending = Gateway(MemoryStore(), "deaf")
    ending.publisher = SharedPublisher(LAW, ending.sensor, PERIOD_S, Deaf(ending.line.seat))
    ending.start()
    await asyncio.sleep(0.1 * PERIOD_S)
    await ending.stop()
    assert ending.task is not None and ending.task.done()


class Slow:
    """A seat whose first publication comes after the lease."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self.exchange, self.leave = seat.exchange, seat.leave

    async def publish(self, token: int, level: float, state: str) -> bool:
        # Time passes for the others, not for this gateway's own deadline: its process is stopped.
        end_s = asyncio.get_running_loop().time() + (LEASE_PERIODS + 1.5) * PERIOD_S
        while (now_s := asyncio.get_running_loop().time()) < end_s:
            try:
                await asyncio.sleep(end_s - now_s)
            except asyncio.CancelledError:
                asyncio.current_task().uncancel()
        return await self._seat.publish(token, level, state)


@scene()
async def test_a_blind_holder_hands_over(
    gateways: list[Gateway], caplog: pytest.LogCaptureFixture
) -> None:
    gateways[0].fault = "no metrics"
    await asyncio.sleep(2.1 * PERIOD_S)
    assert [gateway.publisher.token for gateway in gateways] == [None, 2]
    assert [gateway.level for gateway in gateways] == [0.2, 0.2]  # its own requests count on
    gateways[1].fault = "no metrics"
    await asyncio.sleep(2 * PERIOD_S)
    assert [gateway.level for gateway in gateways] == [None, None]
    assert gateways[1].publisher.reason == "no metrics"
    gateways[0].fault = gateways[1].fault = None
    await asyncio.sleep(3 * PERIOD_S)
    assert [gateway.level for gateway in gateways] == [0.2, 0.2]
    assert "Traceback" not in caplog.text


class Breaks:
    """A law that fails while too many requests are outstanding."""

    def start(self) -> Level:
        return Level(0.0)

    def update(self, state: Level, observation: Any, dt_s: float) -> Level:
        if observation.outstanding > 50:
            raise ValueError("too many")
        return Level(math.nan if observation.outstanding > 40 else 0.25)


@scene(laws=Breaks())
async def test_a_law_that_fails_publishes_nothing(
    gateways: list[Gateway], caplog: pytest.LogCaptureFixture
) -> None:
    assert [gateway.level for gateway in gateways] == [0.25, 0.25]
    for load, reason in ((35, "the law Breaks gave the level nan"), (90, "too many")):
        gateways[0].load(load)
        await asyncio.sleep(4 * PERIOD_S)
        assert [gateway.level for gateway in gateways] == [None, None]
        assert reason in {str(gateway.publisher.failure) for gateway in gateways}
    assert said(caplog).count("the law failed") == 2  # once a gateway
    gateways[0].load(10)
    await asyncio.sleep(3 * PERIOD_S)
    assert [gateway.level for gateway in gateways] == [0.25, 0.25]


FAULTS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["cut", "slow", "blind", "heal", "kill", "stop"]),
        st.floats(0.0, 4.0),
    ),
    max_size=12,
)


@settings(max_examples=30)
@given(FAULTS)
def test_whatever_happens_one_law_runs_and_all_agree_afterwards(
    faults: list[tuple[int, str, float]],
) -> None:
    async def main() -> None:
        store = MemoryStore()
        gateways = [Gateway(store, f"g{number}") for number in range(3)]
        for gateway in gateways:
            gateway.load(10)
            gateway.start()
        for number, fault, pause_s in faults:
            gateway = gateways[number]
            if fault in ("kill", "stop"):
                gateway.kill() if fault == "kill" else await gateway.stop()
                gateways[number] = gateway = Gateway(store, f"g{number} again {pause_s}")
                gateway.load(10)
                gateway.start()
            gateway.line.error = ConnectionError("cut") if fault == "cut" else None
            gateway.line.delay_s = 2.0 if fault == "slow" else 0.0
            gateway.fault = "blind" if fault == "blind" else None
            end_s = asyncio.get_running_loop().time() + pause_s
            while asyncio.get_running_loop().time() < end_s:
                await asyncio.sleep(0.25)
                for each in gateways:
                    signal = each.publisher.signal
                    assert signal is None or (
                        asyncio.get_running_loop().time() - signal.time_s
                        <= STALE_PERIODS * PERIOD_S
                    )
        for gateway in gateways:
            gateway.line.error, gateway.line.delay_s, gateway.fault = None, 0.0, None
        await asyncio.sleep((2 * LEASE_PERIODS + 3) * PERIOD_S)
        assert [gateway.level for gateway in gateways] == [0.3] * 3
        assert len([each for each in gateways if each.publisher.token is not None]) == 1

    run(main())
