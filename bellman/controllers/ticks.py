"""When a law runs: at fixed times after its start, however long each run took."""

import asyncio


class Ticks:
    """Times a period apart, from now on; those that were missed are left out."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._start_s = self._last_s = asyncio.get_running_loop().time()
        self._number = 0

    async def wait(self) -> float:
        """Wait for the next time; return the seconds since the last one."""
        loop = asyncio.get_running_loop()
        missed = int((loop.time() - self._start_s) / self._period_s)
        self._number = max(self._number + 1, missed)
        await asyncio.sleep(self._start_s + self._number * self._period_s - loop.time())
        now_s = loop.time()
        dt_s = now_s - self._last_s
        self._last_s = now_s
        return dt_s
