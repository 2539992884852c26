"""Counts the joules of the server on this machine, in one of the gateway's processes."""

import asyncio
import fcntl
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from bellman.energy.auto import AutoEnergy
from bellman.energy.base import EnergyMeter, LocalServer
from bellman.gateway.arguments import Upstream
from bellman.serving.metrics import MULTIPROCESS

PERIOD_S = 1.0
SAMPLE_PERIOD_S = 0.1
UNREAD_S = 30.0
"""A meter that has had no reading for so long is given up for a new one."""
LONGEST_UNREAD_S = 3600.0
"""After a meter without any reading the next one gets twice as long, up to this: a driver that
hangs keeps a thread of each."""

OpenMeter = Callable[[], Awaitable[EnergyMeter]]

logger = logging.getLogger(__name__)


def local_server(upstreams: Sequence[Upstream]) -> LocalServer | None:
    """Return the one upstream that runs on this machine; None where none or several do."""
    hosts = [(upstream.url.host or "", upstream.url.port) for upstream in upstreams]
    ports = [
        port for host, port in hosts if host in ("localhost", "::1") or host.startswith("127.")
    ]
    return LocalServer(port=ports[0]) if len(ports) == 1 else None


def only_here(stack: AsyncExitStack) -> bool:
    """Whether this process counts: of several workers the first to take the lock."""
    folder = os.environ.get(MULTIPROCESS)
    if folder is None:
        return True
    file = stack.enter_context((Path(folder) / "energy.lock").open("w"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def meter_of(server: LocalServer | None) -> OpenMeter:
    """Return what opens a meter of a server's devices."""
    return partial(AutoEnergy(SAMPLE_PERIOD_S, idle_baseline_s=0.0).create, server)


async def count_energy(open_meter: OpenMeter, count: Callable[[str, float], None]) -> None:
    """Count joules under this host's name, until cancelled.

    A driver that is loaded anew or a card that is reset ends a meter for good: a new one goes on
    from there. What cannot be measured is not counted, and said once an outage.
    """
    counting = _Counting(count)
    patience_s = UNREAD_S
    while True:
        meter = await open_meter()
        await meter.start()
        try:
            read = await counting.until_unread(meter, patience_s)
        finally:
            await meter.stop()
        patience_s = UNREAD_S if read else min(2 * patience_s, LONGEST_UNREAD_S)


class _Counting:
    """Counts what one meter after the other reads, and says what none of them did."""

    def __init__(self, count: Callable[[str, float], None]) -> None:
        self._count = count
        self._host = socket.gethostname()
        self._last_s: float | None = None
        """When there was a reading."""
        self._outage = False

    async def until_unread(self, meter: EnergyMeter, patience_s: float) -> bool:
        """Count until there was no reading for so long; return whether there was any."""
        loop = asyncio.get_running_loop()
        began_s = last_s = loop.time()
        counted_j = 0.0
        while loop.time() - last_s < patience_s:
            reading = await meter.read()
            if reading.energy_j is None:
                self._tell_outage(reading.reason)
            else:
                self._tell_end(began_s)
                self._count(self._host, max(0.0, reading.energy_j - counted_j))
                counted_j = max(counted_j, reading.energy_j)
                self._last_s = last_s = loop.time()
            await asyncio.sleep(PERIOD_S)
        return self._last_s is not None and self._last_s >= began_s

    def _tell_outage(self, reason: str | None) -> None:
        if not self._outage:
            logger.warning("no energy is measured: %s", reason)
        self._outage = True

    def _tell_end(self, began_s: float) -> None:
        """Say, of an outage that is over, what the meter that began then could not count."""
        if self._outage and self._last_s is None:
            logger.warning("energy is measured from now on")
        elif self._outage and self._last_s is not None:
            lost_s = max(0.0, began_s - self._last_s)
            logger.warning("energy is measured again; that of %.0f s is not counted", lost_s)
        self._outage = False
