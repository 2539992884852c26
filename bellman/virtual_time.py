"""An asyncio loop in virtual time: its clock starts at 0 and jumps to the next timer.

It is asyncio's own `BaseEventLoop` but for its one round, which has nothing to wait for but timers,
and so moves the clock instead of asking a selector. There is nothing to wait for outside the
process, so real I/O, threads and processes are refused: a wall clock cannot leak into what is
simulated.
"""

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from typing import Any, Never, TypeVarTuple

Arguments = TypeVarTuple("Arguments")

TICK_S = 1e-6
"""Resolution of the clock: sums of times that differ by rounding alone fall on the same tick."""
END_S = 1e9
"""Where virtual time ends (30 years): only timers at infinity are left, and floats still keep
ticks apart."""
MANY_TIMERS = 100
"""So many cancelled ones, and half of all, are worth looking for."""

REFUSED = (
    *("getaddrinfo", "getnameinfo", "create_connection", "create_server", "create_unix_connection"),
    *("create_unix_server", "create_datagram_endpoint", "connect_accepted_socket", "start_tls"),
    *("sendfile", "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into"),
    *("sock_sendall", "sock_sendto", "sock_connect", "sock_accept", "sock_sendfile"),
    *("add_reader", "remove_reader", "add_writer", "remove_writer", "add_signal_handler"),
    *("connect_read_pipe", "connect_write_pipe", "subprocess_exec", "subprocess_shell"),
    *("run_in_executor", "set_default_executor"),
)
"""The loop's methods that reach outside of it."""


class NotInVirtualTime(RuntimeError):
    """Something asked a virtual clock to wait for the real world."""


class Deadlock(RuntimeError):
    """Nothing is ready and no timer is set: what still waits would wait for ever."""


class _Handle(asyncio.TimerHandle):
    """asyncio's handle, of a timer or of what runs soon, without its traceback for debugging.

    A simulation makes millions: so they are made in half the time.
    """

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: "VirtualTimeLoop",
        context: Context | None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = False


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """Runs tasks and timers in the order of virtual time, as fast as the processor can."""

    _ready: deque[Any]
    _closed: bool
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._ticks = 0
        self._now_s = 0.0
        self._thread = threading.get_ident()
        self._timers: list[tuple[float, int, Any]] = []
        """A heap of handles by when they are due. Of two due at the same time the one that was set
        first goes first; asyncio leaves that order open, but no record may depend on it."""
        self._numbers = itertools.count()

    def time(self) -> float:
        """Seconds of virtual time since the loop was made."""
        return self._now_s

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule at a time; as `BaseEventLoop` does, with timers in order."""
        if self._closed:
            raise RuntimeError("Event loop is closed")
        timer = _Handle(when, callback, args, self, context)
        timer._scheduled = True
        heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def call_soon(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Run in the next round; as `BaseEventLoop` does."""
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = _Handle(self._now_s, callback, args, self, context)
        self._ready.append(handle)
        return handle

    def close(self) -> None:
        """Close the loop; what was scheduled never runs."""
        super().close()
        self._timers.clear()

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Schedule from the loop's own thread, as a signal's handler does."""
        if threading.get_ident() != self._thread:
            raise NotInVirtualTime("another thread cannot wake a loop in virtual time")
        return self.call_soon(callback, *args, context=context)

    def _run_once(self) -> None:
        """Run what is ready; if nothing is, first move the clock to the next timer.

        As `BaseEventLoop` does it, which asks the selector each time.
        """
        if self._timer_cancelled_count > MANY_TIMERS + len(self._timers) // 2:
            self._forget_cancelled_timers()
        timers, ready = self._timers, self._ready
        while timers and timers[0][2]._cancelled:
            heappop(timers)[2]._scheduled = False
            self._timer_cancelled_count -= 1
        if not ready and not self._stopping:
            if not timers or timers[0][0] > END_S:
                raise self._deadlock()
            wait_s = timers[0][0] - self._now_s
            if wait_s > 0:
                self._ticks += round(wait_s / TICK_S)
                self._now_s = self._ticks * TICK_S
        due_s = self._now_s + TICK_S
        while timers and timers[0][0] < due_s:
            timer = heappop(timers)[2]
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            try:
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                message = f"Exception in {handle!r}"
                context = {"message": message, "exception": error, "handle": handle}
                self.call_exception_handler(context)

    def _forget_cancelled_timers(self) -> None:
        """Remove timers that were cancelled long before they are due."""
        for _, _, timer in self._timers:
            timer._scheduled = not timer.cancelled()
        self._timers = [entry for entry in self._timers if entry[2]._scheduled]
        heapify(self._timers)
        self._timer_cancelled_count = 0

    def _deadlock(self) -> Deadlock:
        tasks = asyncio.all_tasks(self)
        names = {getattr(task.get_coro(), "__qualname__", task.get_name()) for task in tasks}
        return Deadlock(
            f"{self._now_s} s of virtual time: nothing is left that could wake the "
            f"{len(tasks)} waiting tasks ({', '.join(sorted(names))})"
        )


def _refused(method: str) -> Callable[..., Never]:
    def refuse(*_: object, **__: object) -> Never:
        raise NotInVirtualTime(
            f"no sockets, files, processes or threads in virtual time: {method} was called"
        )

    return refuse


for _method in REFUSED:
    setattr(VirtualTimeLoop, _method, _refused(_method))


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on a fresh clock at 0."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)
