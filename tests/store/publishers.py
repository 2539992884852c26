"""Gateways for tests: publishers on one store in virtual time, whose ways to it can be cut."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from bellman.controllers.bellman import QueueLaw
from bellman.sensing.failure import SensorFailed
from bellman.serving.metrics import Reported
from bellman.serving.sensor import Sensor
from bellman.store.base import Seat, View
from bellman.store.memory import MemoryStore
from bellman.store.publisher import LEASE_PERIODS, SharedPublisher
from bellman.virtual_time import run

LAW = QueueLaw(q_low=0, q_high=100, max_step=1.0)
SLOW_LAW = QueueLaw(q_low=0, q_high=100, max_step=0.1)
PERIOD_S = 1.0


@dataclass
class Line:
    """A gateway's way to the store: it takes time, and it can be cut."""

    seat: Seat
    delay_s: float = 0.0
    error: Exception | None = None
    published: list[tuple[int, bool]] = field(default_factory=list)

    async def _pass(self) -> None:
        await asyncio.sleep(self.delay_s)
        if self.error is not None:
            raise self.error

    async def exchange(self, in_flight: int, wants_lease: bool) -> View:
        await self._pass()
        return await self.seat.exchange(in_flight, wants_lease)

    async def publish(self, token: int, level: float, state: str) -> bool:
        await self._pass()
        done = await self.seat.publish(token, level, state)
        self.published.append((token, done))
        return done

    async def leave(self) -> None:
        await self._pass()
        await self.seat.leave()


class Gateway:
    """A publisher with the requests at its door."""

    def __init__(self, store: MemoryStore, name: str, law: Any = LAW) -> None:
        self.line = Line(store.seat("endpoint", name, LEASE_PERIODS * PERIOD_S))
        self.fault: str | None = None
        self.sensor = Sensor(self._read, shared=False)
        self.requests: list[object] = []
        self.publisher = SharedPublisher(law, self.sensor, PERIOD_S, self.line)
        self.task: asyncio.Task[None] | None = None

    def _read(self) -> Reported:
        if self.fault is not None:
            raise SensorFailed(self.fault)
        return Reported()

    def load(self, count: int) -> None:
        """Have so many requests in flight at this door."""
        for request in self.requests:
            self.sensor.leave(request)
        self.requests = [self.sensor.enter() for _ in range(count)]

    def start(self) -> None:
        self.task = asyncio.create_task(self.publisher.run())

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def kill(self) -> None:
        """End without a farewell."""
        self.line.error = ConnectionError("killed")
        assert self.task is not None
        self.task.cancel()

    @property
    def level(self) -> float | None:
        signal = self.publisher.signal
        return None if signal is None else signal.level


def scene(*, laws: Any = LAW, count: int = 2, apart_s: float = 0.3) -> Any:
    """Run a test with gateways that started a little apart; each counts 10 requests."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        def play(caplog: pytest.LogCaptureFixture) -> None:
            caplog.set_level(logging.WARNING)

            async def main() -> None:
                store = MemoryStore()
                gateways = [Gateway(store, f"g{number}", laws) for number in range(count)]
                for gateway in gateways:
                    gateway.load(10)
                    gateway.start()
                    await asyncio.sleep(apart_s)
                await asyncio.sleep(3 * PERIOD_S)
                await test(gateways, caplog)

            run(main())

        return play

    return decorate
