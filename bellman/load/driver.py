"""The open-loop driver: every request leaves at its intended time, whatever the server does."""

import asyncio
from collections.abc import Awaitable, Callable

from bellman.load.pacing import PacingStatistics, summarize_pacing
from bellman.load.schedule import Schedule, ScheduledRequest

Send = Callable[[ScheduledRequest], Awaitable[None]]
"""Sends one request, waits for its answer and records it. Never raises for a failed request;
when cancelled it records the request as `unfinished`. Raises `EngineDied` when the engine is."""

HEARTBEAT_S = 0.05


class Heartbeat:
    """Measures by how much the event loop is late: a stalled loop stamps every time too late."""

    def __init__(self) -> None:
        self.stall_max_s = 0.0

    async def run(self) -> None:
        """Beat until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + HEARTBEAT_S
            await asyncio.sleep(HEARTBEAT_S)
            self.stall_max_s = max(self.stall_max_s, loop.time() - due_s)


async def drive(
    schedule: Schedule, send: Send, start_s: float, deadline_s: float
) -> PacingStatistics:
    """Send every request of the schedule at `start_s` + its intended time, then drain.

    One task per request, made when it is due; answers are never waited for. After the last one
    the driver waits until all are done or until `deadline_s`, then cancels the rest. Times are
    those of the running loop's clock.

    An exception of `send` (the engine died) and a cancellation from outside (Ctrl-C) both cancel
    all outstanding requests, wait until these have recorded themselves, and are raised again.
    Requests whose `send` had not begun by then leave no trace here: the caller records them.
    """
    loop = asyncio.get_running_loop()
    intended_s: list[float] = []
    sent_s: list[float] = []

    async def send_one(request: ScheduledRequest) -> None:
        intended_s.append(request.intended_s)
        sent_s.append(loop.time() - start_s)
        await send(request)

    heartbeat = Heartbeat()
    beating = asyncio.create_task(heartbeat.run())
    try:
        async with asyncio.timeout_at(deadline_s), asyncio.TaskGroup() as outstanding:
            for request in schedule.requests:
                wait_s = start_s + request.intended_s - loop.time()
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                outstanding.create_task(send_one(request))
    except TimeoutError:
        pass  # the drain's end; the cancelled requests have recorded themselves
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        beating.cancel()
    return summarize_pacing(len(schedule.requests), intended_s, sent_s, heartbeat.stall_max_s)
