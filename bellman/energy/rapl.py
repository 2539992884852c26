"""Energy of the CPU packages and their memory, from Linux's powercap interface (RAPL).

Source: Linux, Documentation/power/powercap/powercap.rst. A zone counts microjoules in `energy_uj`
and starts again from 0 after `max_energy_range_uj`: minutes on a server, so it is read often.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from bellman.energy.base import EnergyMeter, EnergyReading, EnergyReport
from bellman.energy.none import UnmeasuredEnergy
from bellman.errors import require

MEASURED_ZONES = ("package", "dram")
"""`core` and `uncore` are parts of the package, `psys` is all of them together."""


class Unreadable(Exception):
    """There is no counter, or it may not be read; says why."""


@dataclass(frozen=True)
class RaplEnergy:
    """Meter all CPU packages and, where it counts apart, their memory."""

    idle_baseline_s: float
    """How long idle power is measured before each arm; 0 leaves it out."""
    read_period_s: float = 1.0
    """Seconds between two readings in the background: far less than a wrap-around takes."""
    powercap: str = "/sys/class/powercap"

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(
            self.idle_baseline_s >= 0,
            "energy.idle_baseline_s",
            self.idle_baseline_s,
            "must be 0 or more",
        )
        require(self.read_period_s > 0, "energy.read_period_s", self.read_period_s, "must exceed 0")

    def create(self) -> EnergyMeter:
        """Return the meter for one episode; one that measures nothing where RAPL cannot."""
        try:
            return RaplMeter(self, find_zones(Path(self.powercap)))
        except Unreadable as error:
            return UnmeasuredEnergy(f"rapl: {error}")


class Zone:
    """One counter, unwrapped."""

    def __init__(self, folder: Path) -> None:
        """Read it for the first time; raises `Unreadable`."""
        self.name = read_text(folder / "name")
        self._counter = folder / "energy_uj"
        self._range_uj = int(read_text(folder / "max_energy_range_uj"))
        self._last_uj = int(read_text(self._counter))
        self.total_uj = 0

    def update(self) -> None:
        """Add what was counted since the last time; raises `Unreadable`."""
        now_uj = int(read_text(self._counter))
        change_uj = now_uj - self._last_uj
        self.total_uj += change_uj if change_uj >= 0 else change_uj + self._range_uj + 1
        self._last_uj = now_uj


def read_text(path: Path) -> str:
    """Read a file of the interface; raises `Unreadable`."""
    try:
        return path.read_text().strip()
    except PermissionError:
        raise Unreadable(
            f"{path} may be read by root only (sudo chmod a+r {path}, until the next boot)"
        ) from None
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None


def find_zones(powercap: Path) -> list[Zone]:
    """Open the zones to add up; raises `Unreadable`."""
    # The `intel-rapl-mmio` zones are the same packages a second time.
    folders = sorted(powercap.glob("intel-rapl:*"))
    zones = [
        Zone(folder) for folder in folders if read_text(folder / "name").startswith(MEASURED_ZONES)
    ]
    if not zones:
        raise Unreadable(f"no CPU package in {powercap} (no RAPL, or hidden in a container)")
    return zones


class RaplMeter:
    """Sums its zones."""

    def __init__(self, config: RaplEnergy, zones: list[Zone]) -> None:
        self._config = config
        self._zones = zones
        self._baseline_j = 0.0
        self._idle_power_w: float | None = None
        self._failure: str | None = None
        self._reader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Measure the idle baseline, then begin to count."""
        before = self.read()
        if self._config.idle_baseline_s > 0:
            await asyncio.sleep(self._config.idle_baseline_s)
            after = self.read()
            if before.energy_j is not None and after.energy_j is not None:
                seconds = after.time_s - before.time_s
                self._idle_power_w = (after.energy_j - before.energy_j) / seconds
        self._baseline_j = self._counted_j()
        self._reader = asyncio.create_task(self._read_periodically())

    def read(self) -> EnergyReading:
        """Return joules since the start; None once a counter could not be read."""
        now_s = asyncio.get_running_loop().time()
        try:
            for zone in self._zones:
                zone.update()
        except (Unreadable, ValueError) as error:
            self._failure = self._failure or f"rapl: {error}"
        energy_j = None if self._failure else self._counted_j() - self._baseline_j
        return EnergyReading(now_s, energy_j)

    async def stop(self) -> EnergyReport:
        """End, and report the zones."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        return EnergyReport(
            method="rapl",
            source=None if self._failure else "measured",
            reason=self._failure,
            details={
                "zones": [
                    {"name": zone.name, "energy_j": zone.total_uj / 1e6} for zone in self._zones
                ],
                "idle_baseline_s": self._config.idle_baseline_s,
                "idle_power_w": self._idle_power_w,
            },
        )

    def _counted_j(self) -> float:
        return sum(zone.total_uj for zone in self._zones) / 1e6

    async def _read_periodically(self) -> None:
        while True:
            await asyncio.sleep(self._config.read_period_s)
            self.read()
