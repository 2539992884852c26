"""Counts the joules of the server on this machine, in one of the gateway's processes."""

import asyncio
import fcntl
import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from bellman.energy.auto import AutoEnergy
from bellman.energy.base import LocalServer
from bellman.gateway.arguments import Upstream
from bellman.serving.metrics import MULTIPROCESS

PERIOD_S = 1.0
SAMPLE_PERIOD_S = 0.1

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


async def count_energy(server: LocalServer | None, count: Callable[[str, float], None]) -> None:
    """Count the joules of a server's devices under this host's name, until cancelled.

    What cannot be measured is not counted, and said once.
    """
    meter = await AutoEnergy(SAMPLE_PERIOD_S, idle_baseline_s=0.0).create(server)
    await meter.start()
    host, counted_j, said = socket.gethostname(), 0.0, False
    try:
        while True:
            reading = await meter.read()
            if reading.energy_j is not None:
                count(host, max(0.0, reading.energy_j - counted_j))
                counted_j = max(counted_j, reading.energy_j)
            elif not said:
                said = True
                logger.warning("no energy is measured: %s", reading.reason)
            await asyncio.sleep(PERIOD_S)
    finally:
        await meter.stop()
