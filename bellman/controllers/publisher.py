"""Runs a control law periodically and keeps what it published; the same in simulation and vLLM."""

import asyncio
from collections.abc import Callable

from bellman.controllers.base import Controller
from bellman.sensing.observation import Observation
from bellman.signal import Signal, format_level


class SignalPublisher:
    """Senses, runs the law and publishes its level, every `period_s` of the running loop's time."""

    def __init__(
        self, controller: Controller, sense: Callable[[], Observation], period_s: float
    ) -> None:
        self._controller = controller
        self._sense = sense
        self._period_s = period_s
        self._state = controller.start()
        self.observation: Observation | None = None
        self.signal = Signal(self._state.level, 0.0)

    @property
    def header(self) -> str:
        """The header value that responses carry now."""
        return format_level(self.signal.level)

    def update(self, now_s: float, dt_s: float) -> None:
        """Run the law once."""
        self.observation = self._sense()
        self._state = self._controller.update(self._state, self.observation, dt_s)
        self.signal = Signal(min(1.0, max(0.0, self._state.level)), now_s)

    async def run(self) -> None:
        """Run the law at once and then every period, until cancelled."""
        loop = asyncio.get_running_loop()
        start_s = last_s = loop.time()
        self.update(start_s, self._period_s)
        ticks = 0
        while True:
            ticks = max(ticks + 1, int((loop.time() - start_s) / self._period_s))
            await asyncio.sleep(start_s + ticks * self._period_s - loop.time())
            now_s = loop.time()
            self.update(now_s, now_s - last_s)
            last_s = now_s
