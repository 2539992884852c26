"""No meter: energy is null, with the reason."""

import asyncio
from collections.abc import Sequence

from bellman.energy.base import EnergyReading, EnergyReport, Incident, LocalServer
from bellman.schema import schema


@schema
class NoMeter:
    """Configuration of the absent meter."""

    reason: str = "no energy meter was asked for (energy=none)"

    async def create(self, server: LocalServer | None) -> "UnmeasuredEnergy":
        """Return the meter for one episode."""
        return UnmeasuredEnergy(self.reason)


class UnmeasuredEnergy:
    """Reads None, and reports why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    async def start(self) -> None:
        """Do nothing."""

    async def read(self) -> EnergyReading:
        """Return no energy."""
        return EnergyReading(asyncio.get_running_loop().time(), None, reason=self.reason)

    async def stop(self) -> EnergyReport:
        """Report the reason."""
        return EnergyReport("none", None, self.reason)

    def incidents(self) -> Sequence[Incident]:
        """Return none: there is nothing to distrust."""
        return ()
