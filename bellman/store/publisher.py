"""Publishes the level that several gateways share: one runs the law, all hand out its level."""

import asyncio
import logging
from contextlib import suppress

from bellman.controllers.base import Controller
from bellman.controllers.state import read_state, write_state
from bellman.controllers.step import step
from bellman.controllers.ticks import Ticks
from bellman.errors import in_one_line
from bellman.sensing.failure import NotReported, SensorFailed
from bellman.sensing.numbers import share
from bellman.serving.sensor import Sensor
from bellman.signal import Signal, format_level
from bellman.store.base import Seat, View

LEASE_PERIODS = 3
"""A holder that misses so many periods loses its lease. A store that takes longer is gone."""
STALE_PERIODS = 5
"""An older level is withdrawn. It outlives its publisher until another has taken the lease."""
LOOKS = 4
"""So often a period a gateway without the lease looks at the store: what it hands out is at most a
period and a quarter old."""
LEAVE_S = 1.0
"""At its end a gateway waits so long for the store."""

logger = logging.getLogger(__name__)


class SharedPublisher:
    """Exchanges with the store off the requests' way, and caches the level.

    Every gateway counts and reads. The one that holds the lease runs the law every `period_s` on
    the requests of all, from the state that its predecessor left; the others look more often, as
    their times are not its. A gateway whose sensor or law fails takes no
    lease. Requests read the cache: no failure of the store delays them, but an old level is none.
    """

    def __init__(self, controller: Controller, sensor: Sensor, period_s: float, seat: Seat) -> None:
        self._controller = controller
        self._sensor = sensor
        self._period_s = period_s
        self._seat = seat
        self._state = controller.start()
        self._cached: Signal | None = None
        self._had_level = False
        self.last_s: float | None = None
        """When a level was published last, by this gateway's clock, as far as it knows."""
        self.token: int | None = None
        """The fencing token, while this gateway holds the lease."""
        self.gateways: int | None = None
        """Gateways that share the endpoint; None before the first exchange."""
        self.failure: Exception | None = None
        """Why this gateway cannot run the law."""
        self.outages = 0
        """How often the level had to be withdrawn."""
        self.store_failure: str | None = None
        """Why the last exchange failed, in one line."""
        self.store_outages = 0

    @property
    def signal(self) -> Signal | None:
        """The level that responses carry now; None while it is unknown or too old."""
        cached = self._cached
        if cached is None or _now_s() - cached.time_s > STALE_PERIODS * self._period_s:
            return None
        return cached

    @property
    def header(self) -> str | None:
        """The header value that responses carry now; None for no header."""
        signal = self.signal
        return None if signal is None else format_level(signal.level)

    @property
    def reason(self) -> str | None:
        """Why there is no level, in one line; None while there is one."""
        if self.signal is not None:
            return None
        if self.store_failure is not None:
            return f"the signal store: {self.store_failure}"
        return "no gateway publishes a level" if self.failure is None else str(self.failure)

    async def run(self) -> None:
        """Exchange at once and then every period or look; once cancelled there is no level."""
        looks = Ticks(self._period_s / LOOKS)
        since_s = self._period_s
        task = asyncio.current_task()
        assert task is not None
        try:
            while True:
                # Who has no lease and takes one runs the law for a period.
                await self.update(since_s if self.token is not None else self._period_s)
                if task.cancelling():
                    return  # a store's client lost the cancellation on its way
                since_s = await looks.wait()
                while self.token is not None and since_s < (1 - 0.5 / LOOKS) * self._period_s:
                    since_s += await looks.wait()
        finally:
            self._cached = None
            with suppress(Exception):  # what stays in the store expires
                async with asyncio.timeout(LEAVE_S):
                    await self._seat.leave()

    async def update(self, dt_s: float) -> None:
        """Exchange with the store once, and run the law under the lease."""
        sensed = self._sense()
        asked_s = _now_s()
        try:
            async with asyncio.timeout(LEASE_PERIODS * self._period_s):
                view = await self._seat.exchange(self._sensor.in_flight, wants_lease=sensed)
                self._sensor.elsewhere, self.gateways = view.elsewhere, view.gateways
                self._take_level(view, asked_s)
                held = view.token is not None and await self._run_law(view.token, view, dt_s)
                self.token = view.token if held else None
        except Exception as error:  # of any store
            self._lose_store(error)
        else:
            self._find_store()
        self._tell_level()

    def _sense(self) -> bool:
        """Read the engine's metrics; without them this gateway is no holder."""
        try:
            self._sensor.sense()
        except SensorFailed as failure:
            self.failure = failure
            return False
        if isinstance(self.failure, SensorFailed):
            self.failure = None
        return True

    def _take_level(self, view: View, asked_s: float) -> None:
        found = view.published
        self._cached = None
        if found is not None and found.age_s is not None:
            self.last_s = asked_s - found.age_s
            with suppress(ValueError):  # withdrawn, or a number that nobody of ours wrote
                self._cached = Signal(share(found.level), self.last_s)

    async def _run_law(self, token: int, view: View, dt_s: float) -> bool:
        """Run the law on the requests of all gateways, and publish; whether the lease is kept."""
        try:
            if token != self.token and view.published is not None:
                self._state = read_state(self._controller, view.published.state)
            state, level = step(self._controller, self._state, self._sensor.observe(), dt_s)
        except Exception as error:  # of any law
            if self.failure is None:
                details = None if isinstance(error, NotReported) else error
                logger.error("the law failed: %s", error, exc_info=details)
            self.failure, self._cached = error, None
            await self._seat.exchange(self._sensor.in_flight, wants_lease=False)
            return False
        now_s = _now_s()
        if not await self._seat.publish(token, level, write_state(state)):
            return False
        self._state, self.failure, self.last_s = state, None, now_s
        self._cached = Signal(level, now_s)
        return True

    def _lose_store(self, error: Exception) -> None:
        """Say once an outage that the store fails; what it said last ages."""
        self.token = None
        late = f"no answer within {LEASE_PERIODS * self._period_s:g} s"
        failure = late if isinstance(error, TimeoutError) else in_one_line(error)
        if self.store_failure is None:
            self.store_outages += 1
            stale_s = STALE_PERIODS * self._period_s
            logger.error("the signal store: %s; a level older than %g s is none", failure, stale_s)
        self.store_failure = failure
        if self.signal is None:
            self._sensor.elsewhere = 0  # nobody knows

    def _find_store(self) -> None:
        if self.store_failure is not None:
            logger.warning("the signal store answers again")
        self.store_failure = None

    def _tell_level(self) -> None:
        """Count and say once an outage that there is no level any more."""
        has_level = self.signal is not None
        if self._had_level and not has_level:
            self.outages += 1
            if self.store_failure is None:
                logger.error("no congestion level is published: %s", self.reason)
        elif has_level and not self._had_level and self.outages:
            logger.warning("the congestion level is published again")
        self._had_level = has_level


def _now_s() -> float:
    return asyncio.get_running_loop().time()
