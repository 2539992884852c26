"""The simulated engine's energy meter: exact integrals of the model, readable at any instant."""

import asyncio
from collections.abc import Callable, Sequence

from bellman.energy.base import EnergyReading, EnergyReport, Incident


class ModelledMeter:
    """Reads the engine's cumulative joules; `details` go into the report."""

    def __init__(self, joules_at: Callable[[float], float], details: dict[str, object]) -> None:
        self._joules_at = joules_at
        self._details = details
        self._start_j = 0.0

    async def start(self) -> None:
        """Begin to count."""
        self._start_j = self._joules_at(asyncio.get_running_loop().time())

    async def read(self) -> EnergyReading:
        """Return the joules since the start."""
        now_s = asyncio.get_running_loop().time()
        return EnergyReading(now_s, self._joules_at(now_s) - self._start_j)

    async def stop(self) -> EnergyReport:
        """Report the model's coefficients."""
        return EnergyReport(method="modelled", source="simulated", details=self._details)

    def incidents(self) -> Sequence[Incident]:
        """Return none: the model is read without fail."""
        return ()
