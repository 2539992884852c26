"""Runs a control law periodically and keeps what it published; the same in simulation and vLLM."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from bellman.controllers.base import Controller
from bellman.controllers.step import step
from bellman.controllers.ticks import Ticks
from bellman.sensing.failure import AskedFor, NotReported, SensorFailed
from bellman.sensing.observation import Observation
from bellman.signal import Signal, format_level

logger = logging.getLogger(__name__)


class Publisher(Protocol):
    """What runs a server's law and knows its level: alone, or with others through a store."""

    @property
    def signal(self) -> Signal | None:
        """What is published now; None while there is no level."""

    @property
    def header(self) -> str | None:
        """The header value that responses carry now; None for no header."""

    @property
    def reason(self) -> str | None:
        """Why there is no level, in one line; None while there is one."""

    @property
    def last_s(self) -> float | None:
        """When a level was published last, by the running loop's clock."""

    @property
    def failure(self) -> Exception | None:
        """Why the law cannot run here."""

    @property
    def outages(self) -> int:
        """How often the level had to be withdrawn."""

    async def run(self) -> None:
        """Run the law at once and then every period, until cancelled; then there is no level."""


class SignalPublisher:
    """Senses, runs the law and publishes its level, every `period_s` of the running loop's time.

    While the sensor or the law fails no level is published: an old one would be believed. The next
    period tries again, from the law's last good state.
    """

    def __init__(
        self, controller: Controller, sense: Callable[[], Observation], period_s: float
    ) -> None:
        self._controller = controller
        self._sense = sense
        self._period_s = period_s
        self._state = controller.start()
        self.signal: Signal | None = None
        """What is published now; None before the law's first run and while it cannot run."""
        self.last_s: float | None = None
        """When a level was published last."""
        self.failure: Exception | None = None
        """Why there is no level."""
        self.outages = 0
        """How often the level had to be withdrawn."""

    @property
    def header(self) -> str | None:
        """The header value that responses carry now; None for no header."""
        return None if self.signal is None else format_level(self.signal.level)

    @property
    def reason(self) -> str | None:
        """Why there is no level, in one line; None while there is one."""
        if self.signal is not None:
            return None
        return "the law has not run yet" if self.failure is None else str(self.failure)

    def update(self, now_s: float, dt_s: float) -> None:
        """Run the law once."""
        try:
            state, level = step(self._controller, self._state, self._sense(), dt_s)
        except Exception as error:  # of any sensor and any law: the server goes on answering
            self._withdraw(error)
            return
        if self.failure is not None and not isinstance(self.failure, AskedFor):
            logger.warning("the congestion level is published again")
        self._state, self.failure, self.last_s = state, None, now_s
        self.signal = Signal(level, now_s)

    async def run(self) -> None:
        """Run the law at once and then every period, until cancelled; then there is no level."""
        loop = asyncio.get_running_loop()
        ticks = Ticks(self._period_s)
        try:
            self.update(loop.time(), self._period_s)
            while True:
                dt_s = await ticks.wait()
                self.update(loop.time(), dt_s)
        finally:
            self.signal = None

    def _withdraw(self, error: Exception) -> None:
        """Publish no level, and say so once an outage."""
        self.signal = None
        if self.failure is None:
            self.outages += 1
            details = None if isinstance(error, SensorFailed | NotReported) else error
            if not isinstance(error, AskedFor):
                logger.error("no congestion level is published: %s", error, exc_info=details)
        self.failure = error
