"""Capacity of a saturated engine: completions per second with more requests than it can hold."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bellman.errors import RunError


@dataclass(frozen=True, slots=True)
class CapacityMeasurement:
    """What a saturated engine completed in the window after the warm-up."""

    capacity_rps: float
    """Completed / duration."""
    completed: int
    duration_s: float
    warmup_s: float
    concurrency: int


async def measure_capacity(
    send_one: Callable[[int], Awaitable[None]],
    concurrency: int,
    warmup_s: float,
    duration_s: float,
) -> CapacityMeasurement:
    """Keep `concurrency` requests outstanding for warm-up + duration; count the completions.

    `send_one(index)` sends the index-th request (0, 1, 2, ...) and returns when it is answered; it
    raises for a failed one, because an engine that fails has no capacity to speak of. Choose
    `concurrency` well above the batch that fits, and a duration of many request lifetimes: the
    warm-up has to outlast the first generation of requests, which all start at once.
    """
    loop = asyncio.get_running_loop()
    start_s = loop.time() + warmup_s
    end_s = start_s + duration_s
    completed = 0
    sent = 0

    async def client() -> None:
        nonlocal completed, sent
        while True:
            index, sent = sent, sent + 1
            await send_one(index)
            completed += loop.time() >= start_s

    try:
        async with asyncio.timeout_at(end_s), asyncio.TaskGroup() as clients:
            for _ in range(concurrency):
                clients.create_task(client())
    except TimeoutError:
        pass
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    if completed == 0:
        raise RunError(
            f"no request completed in {duration_s} s at concurrency {concurrency}: "
            "measure longer, or give arrivals.capacity_rps"
        )
    return CapacityMeasurement(completed / duration_s, completed, duration_s, warmup_s, concurrency)
