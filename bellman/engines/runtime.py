"""Runs coroutines on the clock that the engine asks for: virtual for a simulated one, else real."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from bellman import interruption
from bellman.engines.base import Engine

RunCoroutine = Callable[[Coroutine[Any, Any, Any]], Any]


@contextmanager
def running(engine: Engine) -> Iterator[RunCoroutine]:
    """Start the engine and yield `run(coroutine)`; stop the engine on every way out.

    A simulated engine gets a fresh virtual clock, starting at 0, for each coroutine, so that no
    episode depends on what ran before it. A real one keeps one loop, on which it was started.
    A signal that ends the run cancels the coroutine and comes out of it as KeyboardInterrupt.
    """
    factory = engine.loop_factory
    if factory is not None:

        def run_in_virtual_time(coroutine: Coroutine[Any, Any, Any]) -> Any:
            with asyncio.Runner(loop_factory=factory) as runner:
                return interruption.run(runner, coroutine)

        yield run_in_virtual_time
        return
    with asyncio.Runner() as runner:
        try:
            interruption.run(runner, _start(engine))
            yield partial(interruption.run, runner)
        finally:
            runner.run(_stop(engine))  # a signal does not cut it short: no process outlives its run


async def _start(engine: Engine) -> None:
    await engine.__aenter__()


async def _stop(engine: Engine) -> None:
    await engine.__aexit__(None, None, None)
