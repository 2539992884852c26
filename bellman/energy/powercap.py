"""The zones of Linux's powercap interface (RAPL): which to add up, and each as a counter.

Source: Linux, Documentation/power/powercap/powercap.rst. A zone counts microjoules in `energy_uj`
and starts again from 0 after `max_energy_range_uj`: minutes on a server, so it is read often.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CONTROL_TYPES = ("intel-rapl", "intel-rapl-mmio")
"""AMD's packages are `intel-rapl` too. The second has the same packages again, on machines that
have both; alone, it is all there is."""
MEASURED_ZONES = ("package", "dram")
"""`core` and `uncore` are parts of the package, `psys` is the whole board with all of them."""
LARGEST_POWER_W = 1000.0
"""More than any CPU package draws: how soon a counter can have gone round."""


class Unreadable(Exception):
    """There is no counter, or it may not be read; says why."""


@dataclass(frozen=True)
class ZoneFolder:
    """One zone as it is found."""

    folder: Path
    name: str
    """`package-0`, or `package-0 dram` for a part of it."""


class Zone:
    """One counter, unwrapped."""

    def __init__(self, found: ZoneFolder) -> None:
        """Read it for the first time; raises `Unreadable`."""
        self.name = found.name
        self._counter = found.folder / "energy_uj"
        self._range_uj = read_number(found.folder / "max_energy_range_uj")
        if self._range_uj <= 0:
            raise Unreadable(f"{found.folder}/max_energy_range_uj is {self._range_uj}")
        self._last_uj = read_number(self._counter)
        self.total_uj = 0

    @property
    def goes_round_in_s(self) -> float:
        """The shortest time in which it can come round to where it was."""
        return self._range_uj / 1e6 / LARGEST_POWER_W

    def update(self) -> None:
        """Add what was counted since the last time; raises `Unreadable`."""
        now_uj = read_number(self._counter)
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


def read_number(path: Path) -> int:
    """Read a number; raises `Unreadable`."""
    text = read_text(path)
    try:
        return int(text)
    except ValueError:
        raise Unreadable(f"{path} says {text!r}, not a number") from None


def find_zones(powercap: Path) -> tuple[list[Zone], list[str]]:
    """Open the zones to add up, and name those left out; raises `Unreadable`.

    One zone that may not be read makes all of it unreadable: the rest would be too little.
    """
    measured: dict[str, tuple[str, ZoneFolder]] = {}
    left_out = []
    for control_type in CONTROL_TYPES:
        for found in named(sorted(powercap.glob(f"{control_type}:*"))):
            own_name = found.name.split()[-1]
            if not own_name.startswith(MEASURED_ZONES):
                left_out.append(f"{found.folder.name} ({found.name}): a part or a sum of others")
            elif measured.get(found.name, (control_type,))[0] != control_type:
                left_out.append(f"{found.folder.name} ({found.name}): counted already")
            else:
                # Of one driver's zones two of the same name are two packages.
                key = found.name
                while key in measured:
                    key += "'"
                measured[key] = (control_type, ZoneFolder(found.folder, key))
    if not any(is_package(name) for name in measured):
        raise Unreadable(f"no CPU package in {powercap} (no RAPL, or hidden in a container)")
    return [Zone(found) for _, found in measured.values()], left_out


def is_package(name: str) -> bool:
    """Whether a zone is a whole package, not a part of one."""
    return name.startswith("package") and " " not in name


def named(folders: Iterable[Path]) -> list[ZoneFolder]:
    """Name each zone after its parent and itself; raises `Unreadable`."""
    own_names = {folder.name: read_text(folder / "name") for folder in folders}
    zones = []
    for folder in folders:
        parent = own_names.get(folder.name.rpartition(":")[0])
        own_name = own_names[folder.name]
        zones.append(ZoneFolder(folder, f"{parent} {own_name}" if parent else own_name))
    return zones
