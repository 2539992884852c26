"""A thread for calls that may hang, so that neither the event loop nor the process's end does."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")


class NoAnswer(Exception):
    """A call did not come back before its deadline."""


class OwnThread(Executor):
    """Makes one call after the other in a daemon thread.

    `ThreadPoolExecutor` joins its threads when the interpreter ends: one call that never returns
    would keep the run's process for ever.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=self._work, name=name, daemon=True).start()

    def submit(
        self,
        fn: Callable[Parameters, Value],
        /,
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Future[Value]:
        """Put a call in the queue; one that is cancelled before its turn is not made."""
        future: Future[Value] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        self._calls.put(call)
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """End the thread after the calls that it has; waits for nothing."""
        self._calls.put(None)

    async def call(
        self, function: Callable[..., Value], *arguments: Any, deadline_s: float
    ) -> Value:
        """Call `function` in the thread; raises `NoAnswer` after `deadline_s`, and what it raises.

        A call that hangs goes on alone; those that wait behind it are dropped at their deadlines.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(deadline_s):
                return await loop.run_in_executor(self, function, *arguments)
        except TimeoutError:
            raise NoAnswer(f"no answer within {deadline_s:g} s") from None

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
