"""No meter: energy is null, with the reason."""

import asyncio
from dataclasses import dataclass

from bellman.energy.base import EnergyReading, EnergyReport


@dataclass(frozen=True)
class NoMeter:
    """Configuration of the absent meter."""

    reason: str = "no energy meter was asked for (energy=none)"

    def create(self) -> "UnmeasuredEnergy":
        """Return the meter for one episode."""
        return UnmeasuredEnergy(self.reason)


class UnmeasuredEnergy:
    """Reads None, and reports why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    async def start(self) -> None:
        """Do nothing."""

    def read(self) -> EnergyReading:
        """Return no energy."""
        return EnergyReading(asyncio.get_running_loop().time(), None)

    async def stop(self) -> EnergyReport:
        """Report the reason."""
        return EnergyReport("none", None, self.reason)
