"""What every energy meter offers: a cumulative reading, or null with the reason."""

from dataclasses import dataclass, field
from typing import Protocol

from bellman.engines.source import Source


@dataclass(frozen=True, slots=True)
class EnergyReading:
    """A cumulative energy reading. Not measured is None with a reason, never 0."""

    time_s: float
    """Seconds of the running loop's clock."""
    energy_j: float | None
    """Joules since the meter started, summed over its devices."""
    power_w: float | None = None
    """Instantaneous power where the meter has it."""
    sampled_j: float | None = None
    """A second opinion on `energy_j`: the integral of power samples, where the meter takes them."""


@dataclass(frozen=True)
class EnergyReport:
    """What a meter knows beyond its readings, for energy.json."""

    method: str
    """`modelled`, `nvml`, `rapl` or `none`."""
    source: Source | None
    """None when nothing was measured."""
    reason: str | None = None
    """Why there is no reading, when there is none."""
    details: dict[str, object] = field(default_factory=dict)
    """Devices, idle baseline, clocks, throttling, cross-checks."""


class EnergyMeter(Protocol):
    """One meter for one episode."""

    async def start(self) -> None:
        """Begin to measure (and sample in the background where the meter needs it)."""

    def read(self) -> EnergyReading:
        """Read now."""

    async def stop(self) -> EnergyReport:
        """End, and report."""
