"""Runs a load against an engine: keeps intended times, drains, ends everything on any way out."""

import asyncio
import gc
from array import array
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from bellman.load.pacing import PacingStatistics, summarize_pacing
from bellman.load.schedule import Schedule, ScheduledRequest
from bellman.virtual_time import VirtualTimeLoop

Send = Callable[[ScheduledRequest], Awaitable[None]]
"""Sends one request, waits for its answer and records it. Never raises for a failed request;
when cancelled it records the request as `unfinished`. Raises `EngineDied` when the engine is."""

HEARTBEAT_S = 0.05


class Load:
    """What a load model acts through: the run's clock, tasks for requests, and sending itself."""

    def __init__(self, send: Send, start_s: float, tasks: asyncio.TaskGroup) -> None:
        self._loop = asyncio.get_running_loop()
        self._send = send
        self._start_s = start_s
        self._tasks = tasks
        self.intended_s = array("d")  # 8 bytes a request: they stay until the end
        self.sent_s = array("d")

    @property
    def now_s(self) -> float:
        """Seconds since the episode's start."""
        return self._loop.time() - self._start_s

    async def wait_until(self, time_s: float) -> None:
        """Sleep until an absolute time since the start; drift cannot add up."""
        wait_s = time_s - self.now_s
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the dispatcher; the episode ends when all of it has."""
        self._tasks.create_task(work)

    async def send(self, request: ScheduledRequest) -> None:
        """Send a request that is due now, and wait for its answer."""
        self.note_sent(request)
        await self._send(request)

    async def call_at_each(
        self, requests: Sequence[ScheduledRequest], begin: Callable[[ScheduledRequest], None]
    ) -> None:
        """Call `begin` with each request when it is due, by one chain of timers; never early."""
        coming = iter(requests)
        done: asyncio.Future[None] = self._loop.create_future()
        timer: asyncio.Handle | None = None

        def send(request: ScheduledRequest) -> None:
            self.note_sent(request)
            begin(request)

        def go_on(due: ScheduledRequest | None = None) -> None:
            nonlocal timer
            if done.done():  # cancelled
                return
            try:
                if due is not None:
                    send(due)
                for request in coming:
                    wait_s = request.intended_s - self.now_s
                    if wait_s > 0:
                        # Behind what else is due then: the law, the meter.
                        due_s = self._loop.time() + wait_s
                        timer = self._loop.call_at(due_s, self._loop.call_soon, go_on, request)
                        return
                    send(request)
                done.set_result(None)
            except Exception as error:  # the loop would only log it
                done.set_exception(error)

        go_on()
        try:
            await done
        finally:
            if timer is not None:
                timer.cancel()

    def note_sent(self, request: ScheduledRequest) -> None:
        """Take note that a request leaves now."""
        self.intended_s.append(request.intended_s)
        self.sent_s.append(self.now_s)


async def run_load(
    dispatch: Callable[[Load], Awaitable[None]],
    send: Send,
    start_s: float,
    deadline_s: float,
    intended: int | None = None,
) -> PacingStatistics:
    """Run a load model's dispatcher, then wait for what is outstanding, until `deadline_s`.

    Times are those of the running loop's clock; `intended` is how many requests there are to be
    (None: as many as are sent). What is outstanding at the deadline is cancelled.

    An exception of `send` (the engine died) and a cancellation from outside (Ctrl-C) both cancel
    all outstanding requests, wait until these have recorded themselves, and are raised again.
    Requests whose `send` had not begun by then leave no trace here: the caller records them.
    """
    gc.freeze()  # what was loaded before is no garbage: searching it would stall the loop
    stall = None if isinstance(asyncio.get_running_loop(), VirtualTimeLoop) else Heartbeat()
    beating = None if stall is None else asyncio.create_task(stall.beat())
    try:
        async with asyncio.timeout_at(deadline_s), asyncio.TaskGroup() as tasks:
            load = Load(send, start_s, tasks)
            await dispatch(load)
    except TimeoutError:
        pass  # the drain's end; the cancelled requests have recorded themselves
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        if beating is not None:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
        gc.unfreeze()
    sent = len(load.sent_s)
    return summarize_pacing(
        sent if intended is None else intended,
        load.intended_s,
        load.sent_s,
        None if stall is None else stall.max_s,
    )


async def drive(
    schedule: Schedule, send: Send, start_s: float, deadline_s: float
) -> PacingStatistics:
    """Drive the open loop: every request leaves at its intended time, whatever the server does.

    One task per request, made when it is due; answers are never waited for. See `run_load`.
    """

    async def dispatch(load: Load) -> None:
        for request in schedule.requests:
            await load.wait_until(request.intended_s)
            load.spawn(load.send(request))

    return await run_load(dispatch, send, start_s, deadline_s, len(schedule.requests))


class Direct(Protocol):
    """Sends requests without waiting, and so without a task for each; see `Send` for the rest."""

    def begin(self, request: ScheduledRequest) -> None:
        """Send a request now."""

    def close(self) -> None:
        """Say that no more are sent."""

    async def wait(self) -> None:
        """Wait until all have ended; when cancelled, end those outstanding."""


async def drive_directly(
    schedule: Schedule, requests: Direct, start_s: float, deadline_s: float
) -> PacingStatistics:
    """Drive the open loop as `drive` does, in virtual time, where beginning a request costs none.

    A real engine's requests have a task each: what one costs must not delay the next.
    """

    async def dispatch(load: Load) -> None:
        load.spawn(requests.wait())
        await load.call_at_each(schedule.requests, requests.begin)
        requests.close()

    return await run_load(dispatch, send_nothing, start_s, deadline_s, len(schedule.requests))


async def send_nothing(request: ScheduledRequest) -> None:
    """Stand where nothing is sent by a task."""


class Heartbeat:
    """Measures by how much the event loop is late: a stalled loop stamps every time too late.

    Virtual time stands still while the loop works: there it could see nothing.
    """

    def __init__(self) -> None:
        self.max_s = 0.0

    async def beat(self) -> None:
        """Beat until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + HEARTBEAT_S
            await asyncio.sleep(HEARTBEAT_S)
            self.max_s = max(self.max_s, loop.time() - due_s)
