"""The open-loop driver on servers with known answers, exact in virtual time."""

import asyncio

import numpy as np
import pytest

from bellman.engines.base import EngineDied
from bellman.load.driver import drive
from bellman.load.pacing import PacingLimits, PacingStatistics
from tests.load.places_server import PlacesServer, run_virtual, schedule_at

TICK_S = 1e-6
LIMITS = PacingLimits(lag_p99_s=0.05, rate_error=0.01, stall_s=0.2)


def serve(times, places, service_s, deadline_s=1e6):
    async def main():
        server = PlacesServer(places, service_s)
        pacing = await drive(schedule_at(times), server.send, server.start_s, deadline_s)
        return server.answers, pacing

    return run_virtual(main())


def test_constant_overload_delays_the_last_request_by_the_known_time():
    answers, pacing = serve([k / 6 for k in range(60)], places=4, service_s=1.0)
    assert answers[-1].e2e_s == pytest.approx(5.667, abs=5e-4)
    assert pacing.lag_max_s <= 2 * TICK_S
    assert pacing.offered_rps == pytest.approx(6.0)
    assert pacing.achieved_rps == pytest.approx(6.0, rel=1e-6)
    assert pacing.stall_max_s is None
    assert LIMITS.invalid_reasons(pacing) == []


def test_nobody_waits_at_a_constant_rate_of_exactly_the_capacity():
    answers, _ = serve([k / 4 for k in range(400)], places=4, service_s=1.0)
    assert max(answer.e2e_s for answer in answers) == pytest.approx(1.0, abs=2 * TICK_S)


def test_some_wait_at_a_poisson_rate_of_the_capacity():
    times = np.cumsum(np.random.default_rng(5).exponential(0.25, 400))
    answers, _ = serve(list(times), places=4, service_s=1.0)
    waits = [answer.e2e_s - 1.0 for answer in answers]
    assert max(waits) > 0.5
    assert min(waits) < 1e-4


def test_ten_thousand_requests_leave_on_the_tick():
    times = [round(t, 6) for t in np.cumsum(np.random.default_rng(1).exponential(0.01, 10_000))]
    answers, pacing = serve(times, places=10_000, service_s=3.0)
    assert pacing.sent == 10_000
    assert pacing.lag_max_s <= 2 * TICK_S
    assert [answer.request_id for answer in answers] == list(range(10_000))


def test_requests_outstanding_at_the_deadline_are_cancelled():
    answers, pacing = serve([0.0, 1.0, 2.0], places=1, service_s=10.0, deadline_s=15.0)
    assert [answer.ended_s is not None for answer in answers] == [True, False, False]
    assert pacing.sent == pacing.intended == 3


def test_the_death_of_the_engine_ends_the_run_at_once_after_the_rest_is_recorded():
    async def main():
        loop = asyncio.get_running_loop()
        unfinished = []

        async def send(request):
            if request.request_id == 3:
                raise EngineDied("gone")
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                unfinished.append(request.request_id)
                raise

        with pytest.raises(EngineDied, match="gone"):
            await drive(schedule_at([0, 1, 2, 3, 50]), send, 0.0, 1000.0)
        return sorted(unfinished), loop.time()

    assert run_virtual(main()) == ([0, 1, 2], pytest.approx(3.0, abs=1e-5))


def test_a_cancelled_run_waits_until_its_requests_are_recorded():
    async def main():
        recorded = []

        async def send(request):
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                await asyncio.sleep(0)  # recording may yield
                recorded.append(request.request_id)
                raise

        run = asyncio.create_task(drive(schedule_at([0.0, 0.5, 9.0]), send, 0.0, 1000.0))
        await asyncio.sleep(1.0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert len(asyncio.all_tasks()) == 1, "a task was left behind"
        return sorted(recorded)

    assert run_virtual(main()) == [0, 1]


def test_a_real_loop_that_stalls_makes_the_run_invalid():
    import time

    async def main():
        async def send(request):
            if request.request_id == 5:
                time.sleep(0.4)

        return await drive(
            schedule_at([k / 100 for k in range(50)]),
            send,
            asyncio.get_running_loop().time(),
            asyncio.get_running_loop().time() + 10,
        )

    reasons = LIMITS.invalid_reasons(asyncio.run(main()))
    assert any("stalled" in reason for reason in reasons)
    assert any("lag p99" in reason for reason in reasons)


def test_a_driver_that_sends_too_slowly_is_invalid():
    pacing = PacingStatistics(100, 100, 0.0, 0.0, 0.0, 100.0, 98.5, 0.0)
    (reason,) = LIMITS.invalid_reasons(pacing)
    assert reason == "achieved rate 98.50/s is -1.5% off the offered 100.00/s (limit 1.0%)"


def test_an_empty_schedule_has_no_statistics():
    _, pacing = serve([], places=1, service_s=1.0)
    assert pacing.sent == 0
    assert pacing.lag_p99_s is None
    assert LIMITS.invalid_reasons(pacing) == []
