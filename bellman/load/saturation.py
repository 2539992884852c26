"""Capacity of a saturated engine: completions per second with more requests than it can hold."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bellman.errors import RunError, require
from bellman.load.completion_rate import INTERVAL_METHOD, completion_rate
from bellman.schema import Count, NotNegative, Positive, schema

SAME_INSTANT_S = 1e-3
"""Answers that come together with the window's end are still counted."""


@schema
class CapacitySettings:
    """How the uncontrolled engine is saturated to find its capacity."""

    concurrency: Count
    """Requests kept outstanding: well above what fits in the batch."""
    warmup_s: NotNegative
    """The warm-up lasts at least so long, and until the first `concurrency` requests, which all
    start at once, are answered."""
    duration_s: Positive
    """The measurement lasts at least so long,"""
    completions: Count
    """and until so many requests were answered after the warm-up,"""
    deadline_s: Positive
    """but no longer than this, warm-up included."""

    def __post_init__(self) -> None:
        """Check that the deadline leaves the time."""
        least_s = self.warmup_s + self.duration_s
        enough = f"must be at least warmup_s + duration_s = {least_s:g}"
        require(self.deadline_s >= least_s, "deadline_s", self.deadline_s, enough)


@dataclass(frozen=True, slots=True)
class CapacityMeasurement:
    """What a saturated engine completed in the window after the warm-up."""

    capacity_rps: float
    """Completed / duration."""
    low_rps: float | None
    high_rps: float | None
    """The capacity's interval; see `CompletionRate`."""
    interval: str
    completed: int
    duration_s: float
    warmup_s: float
    concurrency: int


class Saturation:
    """Clients that ask again as soon as they are answered, and what they have seen so far."""

    def __init__(self, send_one: Callable[[int], Awaitable[None]], concurrency: int) -> None:
        self._send_one = send_one
        self._sent = 0
        self._answered = asyncio.Event()
        self.concurrency = concurrency
        self.first_round_out = concurrency
        """Requests of the first round that are not answered yet."""
        self.first_round_s = 0.0
        """When the last of them was answered."""
        self.ended_s: list[float] = []

    async def client(self) -> None:
        """Send one request after the other, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            index, self._sent = self._sent, self._sent + 1
            await self._send_one(index)
            self.ended_s.append(loop.time())
            if index < self.concurrency:
                self.first_round_out -= 1
                self.first_round_s = loop.time()
            self._answered.set()

    async def answer(self) -> None:
        """Wait for the next answer."""
        self._answered.clear()
        await self._answered.wait()

    async def first_after(self, time_s: float) -> float:
        """Return when the first answer after a time came; waits for it."""
        while not self.ended_after(time_s):
            await self.answer()
        return next(ended_s for ended_s in self.ended_s if ended_s > time_s)

    def ended_after(self, time_s: float) -> int:
        """Return how many were answered after a time."""
        return sum(ended_s > time_s for ended_s in self.ended_s)


async def measure_capacity(
    send_one: Callable[[int], Awaitable[None]], how: CapacitySettings
) -> CapacityMeasurement:
    """Keep `how.concurrency` requests outstanding; count the completions after the warm-up.

    `send_one(index)` sends the index-th request (0, 1, 2, ...) and returns when it is answered; it
    raises for a failed one, because an engine that fails has no capacity to speak of. Raises
    `RunError` when the deadline comes before there are enough answers.

    A fast engine is measured for exactly `how.duration_s` after `how.warmup_s`. With a slow one the
    window begins and ends with an answer, so that few answers do not hide behind its edges.
    """
    loop = asyncio.get_running_loop()
    begin_s = loop.time()
    saturation = Saturation(send_one, how.concurrency)
    start_s: float | None = None
    try:
        async with asyncio.timeout_at(begin_s + how.deadline_s), asyncio.TaskGroup() as group:
            clients = [group.create_task(saturation.client()) for _ in range(how.concurrency)]
            await sleep_until(begin_s + how.warmup_s)
            while saturation.first_round_out:
                await saturation.answer()
            start_s = max(begin_s + how.warmup_s, saturation.first_round_s)
            end_s = start_s + how.duration_s
            await sleep_until(end_s)
            if saturation.ended_after(start_s) < how.completions:
                if start_s > saturation.first_round_s:
                    start_s = await saturation.first_after(start_s)
                while saturation.ended_after(start_s) < how.completions:
                    await saturation.answer()
                end_s = max(end_s, saturation.ended_s[-1])
            await asyncio.sleep(SAME_INSTANT_S)
            for client in clients:
                client.cancel()
    except TimeoutError:
        raise RunError(shortfall(saturation, how, start_s)) from None
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    rate = completion_rate(saturation.ended_s, start_s, end_s)
    return CapacityMeasurement(
        capacity_rps=rate.rate_rps,
        low_rps=rate.low_rps,
        high_rps=rate.high_rps,
        interval=INTERVAL_METHOD,
        completed=rate.completed,
        duration_s=end_s - start_s,
        warmup_s=start_s - begin_s,
        concurrency=how.concurrency,
    )


async def sleep_until(time_s: float) -> None:
    """Sleep until a time of the running loop's clock."""
    await asyncio.sleep(max(0.0, time_s - asyncio.get_running_loop().time()))


def shortfall(saturation: Saturation, how: CapacitySettings, start_s: float | None) -> str:
    """Say what the deadline came before, and what to change."""
    remedy = "raise it, or give arrivals.capacity_rps"
    if start_s is None:
        answered = how.concurrency - saturation.first_round_out
        return (
            f"capacity.deadline_s={how.deadline_s:g}: only {answered} of the first "
            f"capacity.concurrency={how.concurrency} requests were answered by then; {remedy}"
        )
    return (
        f"capacity.deadline_s={how.deadline_s:g}: only {saturation.ended_after(start_s)} of "
        f"capacity.completions={how.completions} answers came after the warm-up; {remedy}"
    )
