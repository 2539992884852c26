"""Energy of the CPU packages and their memory, from Linux's powercap interface (RAPL)."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from bellman.energy.base import EnergyMeter, EnergyReading, EnergyReport, Incident, LocalServer
from bellman.energy.counter import EnergyCounter
from bellman.energy.incident_log import IncidentLog
from bellman.energy.none import UnmeasuredEnergy
from bellman.energy.own_thread import NoAnswer, OwnThread
from bellman.energy.powercap import LARGEST_POWER_W, Unreadable, Zone, find_zones, is_package
from bellman.schema import NotNegative, Positive, schema

DEADLINE_S = 2.0
"""A reading may take so long; later it is null."""
RETRY_S = 0.1
"""A reading that failed is tried again after so long."""
MOVES_WITHIN_S = 10.0
"""Counters move every millisecond, also on an idle machine; one that stands still is none."""
JUMP_MARGIN_S = 1.0
"""So much more time than has passed is allowed for what a counter may have counted."""
LATE_PERIODS = 3.0
"""A background reading that comes after so many periods is late."""


@schema
class RaplEnergy:
    """Meter all CPU packages and, where it counts apart, their memory."""

    idle_baseline_s: NotNegative
    """How long idle power is measured before each arm; 0 leaves it out."""
    read_period_s: Positive = 1.0
    """Seconds between two readings in the background: far less than a wrap-around takes."""
    powercap: str = "/sys/class/powercap"

    async def create(self, server: LocalServer | None) -> EnergyMeter:
        """Return the meter for one episode; one that measures nothing where RAPL cannot."""
        thread = OwnThread("rapl")
        try:
            found = await thread.call(find_zones, Path(self.powercap), deadline_s=DEADLINE_S)
        except (Unreadable, NoAnswer) as error:
            thread.shutdown()
            return UnmeasuredEnergy(f"rapl: {error}")
        return RaplMeter(self, thread, *found)


class RaplMeter:
    """Sums its zones, read in a thread of its own."""

    def __init__(
        self, config: RaplEnergy, thread: OwnThread, zones: list[Zone], left_out: list[str]
    ) -> None:
        self._config = config
        self._thread = thread
        self._zones = zones
        self._left_out = left_out
        self._counters = {zone.name: EnergyCounter() for zone in zones}
        self._log = IncidentLog()
        self._began_s = 0.0
        self._idle_power_w: float | None = None
        self._failure: str | None = None
        """Why the energy is unknown for good."""
        self._unread: str | None = None
        """Why the last reading has no energy."""
        self._measured = False
        self._reader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Measure the idle baseline, then begin to count."""
        loop = asyncio.get_running_loop()
        names = ", ".join(zone.name for zone in self._zones)
        self._log.note_whole_episode(
            f"the joules are the whole machine's ({names}), this client's and every other "
            "program's included, and no GPU's"
        )
        self._reader = asyncio.create_task(self._read_periodically())
        before = await self.read()
        if self._config.idle_baseline_s > 0:
            await asyncio.sleep(self._config.idle_baseline_s)
            after = await self.read()
            if before.energy_j is not None and after.energy_j is not None:
                seconds = after.time_s - before.time_s
                self._idle_power_w = (after.energy_j - before.energy_j) / seconds
        for counter in self._counters.values():
            counter.begin()
        self._measured = False
        self._began_s = loop.time()

    async def read(self) -> EnergyReading:
        """Return joules from the start to this instant; None where a counter cannot be read."""
        now_s = asyncio.get_running_loop().time()
        reason = await self._read_zones_past(now_s)
        for name, counter in self._counters.items():
            if reason is None and is_package(name) and counter.still_s > MOVES_WITHIN_S:
                reason = f"rapl: the energy counter of {name} does not move"
        self._unread = reason
        if reason is not None:
            return EnergyReading(now_s, None, reason=reason)
        self._measured = True
        joules = sum(counter.joules_at(now_s) for counter in self._counters.values())
        return EnergyReading(now_s, joules)

    async def stop(self) -> EnergyReport:
        """End, and report the zones."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        self._thread.shutdown()
        unknown = self._failure or self._unread
        reasons = [] if unknown is None else [unknown]
        return EnergyReport(
            method="rapl",
            source="measured" if self._measured else None,
            reason="; ".join(reasons + self._log.whole_episode()),
            details={
                "zones": [
                    {"name": name, "energy_j": counter.counted_j}
                    for name, counter in self._counters.items()
                ],
                "zones_left_out": self._left_out,
                "memory_counted": any("dram" in name for name in self._counters),
                "idle_baseline_s": self._config.idle_baseline_s,
                "idle_power_w": self._idle_power_w,
                "incidents": self._log.described(self._began_s),
            },
        )

    def incidents(self) -> Sequence[Incident]:
        """Return failed readings, still counters, and whose energy it is."""
        return self._log.incidents

    async def _read_zones_past(self, time_s: float) -> str | None:
        """Read until every zone was read at or after `time_s`; return why that fails."""
        loop = asyncio.get_running_loop()
        while (reason := await self._read_zones()) is not None:
            if self._failure is not None or loop.time() + RETRY_S > time_s + DEADLINE_S:
                return reason
            await asyncio.sleep(RETRY_S)
        return None

    async def _read_zones(self) -> str | None:
        """Read all zones, and return why that fails.

        A counter goes on while it cannot be read, so that the next reading makes up for this one.
        """
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            read = await self._thread.call(
                *(read_all, self._zones, loop.time), deadline_s=DEADLINE_S
            )
        except NoAnswer as error:
            return self._failure or self._note(str(error), began_s)
        except Exception as error:  # a fault in the program ends the reading, not the episode
            self._fail(f"{type(error).__name__}: {error}")
            return self._failure
        reason = None
        for zone, found in zip(self._zones, read, strict=True):
            if isinstance(found, Unreadable):
                reason = self._note(str(found), began_s)
            else:
                self._take(zone, *found)
        return self._failure or reason

    def _note(self, problem: str, began_s: float) -> str:
        """Note why a reading failed, and return it."""
        reason = f"rapl: {problem}"
        self._log.note(reason, began_s, asyncio.get_running_loop().time())
        return reason

    def _take(self, zone: Zone, time_s: float, total_j: float) -> None:
        counter = self._counters[zone.name]
        waited_s = time_s - (time_s if counter.last_s is None else counter.last_s)
        late = waited_s > LATE_PERIODS * self._config.read_period_s
        if late and waited_s >= zone.goes_round_in_s:
            self._fail(
                f"{zone.name} was not read for {waited_s:.0f} s, in which its counter may have "
                "gone round more than once"
            )
        jump_j = total_j - (counter.last_j or 0.0)
        if jump_j > LARGEST_POWER_W * (waited_s + JUMP_MARGIN_S):
            self._fail(
                f"{zone.name} counted {jump_j:.0f} J in {waited_s:.1f} s, more than a package can "
                "draw: its counter began again from 0"
            )
        counter.add(time_s, total_j)
        if counter.still_s > MOVES_WITHIN_S:
            text = f"rapl: the energy counter of {zone.name} does not move"
            self._log.note(text, time_s - counter.still_s, time_s)

    def _fail(self, reason: str) -> None:
        """Note the first reason why the energy is unknown; it stays so."""
        self._failure = self._failure or f"rapl: {reason}"

    async def _read_periodically(self) -> None:
        while True:
            await asyncio.sleep(self._config.read_period_s)
            await self._read_zones()


def read_all(
    zones: Sequence[Zone], clock: Callable[[], float]
) -> list[tuple[float, float] | Unreadable]:
    """Return when each zone was read, and its joules since it was opened, or why it was not."""
    read: list[tuple[float, float] | Unreadable] = []
    for zone in zones:
        try:
            zone.update()
        except Unreadable as error:
            read.append(error)
        else:
            read.append((clock(), zone.total_uj / 1e6))
    return read
