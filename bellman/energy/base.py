"""What every energy meter offers: a cumulative reading, or null with the reason."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bellman.source import Source


@dataclass(frozen=True, slots=True)
class LocalServer:
    """The server whose energy is wanted, as far as this machine knows it."""

    process_id: int | None = None
    """The process that this run started: it and its descendants serve."""
    port: int | None = None
    """Where a server that somebody else started listens."""


@dataclass(frozen=True, slots=True)
class EnergyReading:
    """A cumulative energy reading. Not measured is None with a reason, never 0."""

    time_s: float
    """Seconds of the running loop's clock."""
    energy_j: float | None
    """Joules from the meter's start to `time_s`, summed over its devices."""
    power_w: float | None = None
    """Instantaneous power where the meter has it."""
    sampled_j: float | None = None
    """A second opinion on `energy_j`: the integral of power samples, where the meter takes them."""
    uncertain_s: float = 0.0
    """By how long `energy_j` may be late: counters move in steps."""
    reason: str | None = None
    """Why this reading has no energy."""
    replicas_j: Mapping[str, float | None] | None = None
    """Of several engines each one's part of `energy_j`; None where there is one."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that makes the energy of every window that it touches doubtful."""

    text: str
    start_s: float = -math.inf
    """Seconds of the running loop's clock; infinite where it concerns the whole episode."""
    end_s: float = math.inf

    def touches(self, start_s: float, end_s: float) -> bool:
        """Whether it falls into a window."""
        return self.start_s <= end_s and self.end_s >= start_s

    def described(self, origin_s: float) -> str:
        """Return what happened and when, in seconds after `origin_s`."""
        if math.isinf(self.start_s):
            return self.text
        end = "" if math.isinf(self.end_s) else f"-{self.end_s - origin_s:.1f}"
        return f"{self.text} (at {self.start_s - origin_s:.1f}{end} s)"


@dataclass(frozen=True)
class EnergyReport:
    """What a meter knows beyond its readings, for energy.json."""

    method: str
    """`modelled`, `nvml`, `rapl` or `none`."""
    source: Source | None
    """None when nothing was measured."""
    reason: str | None = None
    """Why there is no reading, or why to distrust all of them."""
    details: dict[str, object] = field(default_factory=dict)
    """Devices, idle baseline, clocks, throttling, cross-checks, incidents."""


class EnergyMeter(Protocol):
    """One meter for one episode. None of its calls may stall the event loop or raise."""

    async def start(self) -> None:
        """Begin to measure (and sample in the background where the meter needs it)."""

    async def read(self) -> EnergyReading:
        """Read the energy up to the instant of the call, however long the device takes."""

    async def stop(self) -> EnergyReport:
        """End, and report."""

    def incidents(self) -> Sequence[Incident]:
        """Return why to distrust windows of the episode, up to now."""


class EnergyConfig(Protocol):
    """A variant of the config group `energy`."""

    async def create(self, server: LocalServer | None) -> EnergyMeter:
        """Return the meter of a server for one episode; one that says why where it cannot read."""
