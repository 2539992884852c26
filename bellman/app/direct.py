"""Sends requests without a task and a timer for each, where the engine itself tells their ends."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bellman.app.summarization import SummarizationApp
from bellman.engines.base import Completion, DirectSession, EngineDied, RequestFailed
from bellman.load.schedule import ScheduledRequest
from bellman.records import RequestRecord
from bellman.virtual_time import TICK_S

End = Completion | RequestFailed | TimeoutError | EngineDied


@dataclass(slots=True, eq=False)
class _Outstanding:
    record: RequestRecord
    deadline_s: float
    started: Any = None
    """What the session cancels it by; None once it has ended."""


class DirectRequests:
    """All requests of an episode on an engine that offers `DirectSession`.

    Each is recorded as `SummarizationApp.summarize` does it.
    """

    def __init__(
        self,
        app: SummarizationApp,
        session: DirectSession,
        intend: Callable[[ScheduledRequest], RequestRecord],
        write: Callable[[RequestRecord], None],
    ) -> None:
        self._app = app
        self._session = session
        self._intend = intend
        self._write = write
        self._loop = asyncio.get_running_loop()
        self._outstanding: dict[_Outstanding, None] = {}  # in the order of sending
        self._deadlines: deque[_Outstanding] = deque()  # rising, as all wait equally long
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._over: asyncio.Future[None] = self._loop.create_future()

    def begin(self, scheduled: ScheduledRequest) -> None:
        """Send a request now."""
        record = self._intend(scheduled)
        one = _Outstanding(record, self._loop.time() + self._app.request_timeout_s)
        self._outstanding[one] = None

        request = self._app.prepare(scheduled, record)
        try:
            one.started = self._session.start(request, self._app.receive, partial(self._end, one))
        except (RequestFailed, EngineDied) as failure:
            self._end(one, failure)
        else:
            self._deadlines.append(one)
            if self._timer is None:
                self._timer = self._loop.call_at(one.deadline_s, self._end_late_ones)

    def close(self) -> None:
        """Say that no more are sent."""
        self._closed = True
        self._end_if_none_is_left()

    async def wait(self) -> None:
        """Wait until all have ended; raises `EngineDied`, and what recording one raised.

        When that, or a cancellation, comes first, those outstanding are recorded as `unfinished`.
        """
        try:
            await self._over
        finally:
            if self._timer is not None:
                self._timer.cancel()
            outstanding, self._outstanding = self._outstanding, {}
            for one in outstanding:
                if one.started is not None:
                    self._session.cancel(one.started)
                self._write(one.record)

    def _end(self, one: _Outstanding, end: End) -> None:
        """Record a request that has ended."""
        one.started = None
        del self._outstanding[one]
        error: Exception | None = None
        try:
            if isinstance(end, Completion):
                self._app.complete(one.record, end)
            elif isinstance(end, RequestFailed):
                self._app.fail(one.record, end)
            elif isinstance(end, TimeoutError):
                self._app.time_out(one.record)
            else:
                error = end
            self._write(one.record)
        except Exception as failure:  # of the disk: it must end the episode, not the engine
            error = failure
        if error is not None and not self._over.done():
            self._over.set_exception(error)
        self._end_if_none_is_left()

    def _end_if_none_is_left(self) -> None:
        if self._closed and not self._outstanding and not self._over.done():
            self._over.set_result(None)

    def _end_late_ones(self) -> None:
        """End those whose time is over; the timer is set again for the next that is out."""
        self._timer = None
        late_s = self._loop.time() + TICK_S  # a timer of this tick is due, for the loop as well
        while self._deadlines:
            one = self._deadlines[0]
            if one.started is not None and one.deadline_s >= late_s:
                self._timer = self._loop.call_at(one.deadline_s, self._end_late_ones)
                return
            self._deadlines.popleft()
            if one.started is not None:
                self._session.cancel(one.started)
                self._end(one, TimeoutError())
