"""Signals that end a run (SIGINT, SIGTERM, SIGHUP): none is lost, and none strikes between records.

A signal is noted first of all. What it does then depends on where it falls:

* in a coroutine that `run` runs, real or virtual time: its task is cancelled, by the loop itself;
* inside `interruptible()`, where nothing is written that must be whole: KeyboardInterrupt at once;
* elsewhere: nothing, until the code reaches `check()`, a coroutine or an interruptible part.

A KeyboardInterrupt that a callback, a destructor or a logging handler swallows is raised again at
the next of these places, since the note stays.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    """What the signal handler sees: Python runs it in the main thread alone."""

    def __init__(self) -> None:
        self.signals = 0
        self.raises = False
        self.pass_on: Callable[[], None] = lambda: None
        self.running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None


_state = _State()


@contextmanager
def handled() -> Iterator[None]:
    """Take the signals over for a while; outside the main thread, which gets none, do nothing."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    report_unraisable = sys.unraisablehook
    try:
        take_over()
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        sys.unraisablehook = report_unraisable
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def take_over() -> None:
    """Take the signals over for good; raises ValueError outside the main thread."""
    for number in SIGNALS:
        # A shell starts background jobs with SIGINT ignored; nohup lets a terminal close.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _note)
    report_unraisable = sys.unraisablehook

    def report_others(unraisable: "sys.UnraisableHookArgs") -> None:
        # What a destructor swallowed comes again: a traceback of it would only hide how it ended.
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            report_unraisable(unraisable)

    sys.unraisablehook = report_others


def ignore_from_now() -> None:
    """Ignore the signals where all is written: one could only spoil the exit status."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def pass_on(function: Callable[[], None]) -> None:
    """Call a function before KeyboardInterrupt is raised at once: it ends what runs elsewhere."""
    _state.pass_on = function


def signals_received() -> int:
    """Return how many signals asked for the end so far."""
    return _state.signals


def check(heeded: int = 0) -> None:
    """Raise KeyboardInterrupt when more signals came in than those `heeded` already."""
    if _state.signals > heeded:
        raise KeyboardInterrupt


@contextmanager
def interruptible(heeded: int = 0) -> Iterator[None]:
    """Let a signal raise KeyboardInterrupt at once, in code that leaves nothing half done.

    One that came before and was not yet `heeded` raises it at the start, one that was swallowed
    inside at the end.
    """
    with _raising(True):
        check(heeded)
        yield
        check(heeded)


@contextmanager
def unbroken() -> Iterator[None]:
    """Hold signals back in a part, of what else is interruptible, that must end in order."""
    with _raising(False):
        yield


def run(runner: asyncio.Runner, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine; a signal cancels it, and once that has ended raises KeyboardInterrupt.

    Each further signal cancels it again. A coroutine that ends by itself keeps its result: the
    signal is raised at the next place.
    """
    if _state.signals:
        coroutine.close()
        raise KeyboardInterrupt
    try:
        return runner.run(_cancellable(coroutine))
    except (asyncio.CancelledError, Exception) as end:
        if _state.signals:  # whatever the end was called on its way up
            raise KeyboardInterrupt from end
        raise


async def _cancellable(coroutine: Coroutine[Any, Any, Any]) -> Any:
    task = asyncio.current_task()
    assert task is not None
    outer, _state.running = _state.running, (asyncio.get_running_loop(), task)
    try:
        if _state.signals:  # after `run` looked and before a signal would have found the task
            task.cancel()
        return await coroutine
    finally:
        _state.running = outer


@contextmanager
def _raising(raises: bool) -> Iterator[None]:
    outer, _state.raises = _state.raises, raises
    try:
        yield
    finally:
        _state.raises = outer


def _note(_number: int, _frame: FrameType | None) -> None:
    _state.signals += 1
    if _state.running is not None:
        loop, task = _state.running
        # Wakes a loop that waits for its sockets; a signal handler must not touch the task itself.
        loop.call_soon_threadsafe(task.cancel)
    elif _state.raises:
        _state.pass_on()
        raise KeyboardInterrupt
