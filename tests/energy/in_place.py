"""Virtual time for meters: what they ask a thread for is asked in place, and takes no time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from bellman.virtual_time import VirtualTimeLoop


class ReadingInPlace(VirtualTimeLoop):
    """A device's read takes no virtual time, so that no thread is needed for it."""

    def run_in_executor(self, executor: object, read: Callable[..., Any], *arguments: Any) -> Any:
        future = self.create_future()
        try:
            future.set_result(read(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def stall(self, seconds: float) -> None:
        """Let time go by while nothing runs."""
        self._now_s += seconds


def run(episode: Callable[[], Awaitable[Any]]) -> Any:
    """Run an episode on a fresh clock."""
    with asyncio.Runner(loop_factory=ReadingInPlace) as runner:
        return runner.run(episode())  # type: ignore[arg-type]
