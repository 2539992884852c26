"""A powercap folder as Linux has it, whose counters a test moves."""

from pathlib import Path

from bellman.energy.base import EnergyMeter
from bellman.energy.rapl import RaplEnergy

RANGE_UJ = 1_000_000


def write_zone(powercap: Path, zone: str, name: str, energy_uj: int) -> Path:
    folder = powercap / zone
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    return folder / "energy_uj"


def advance(counter: Path, microjoules: int) -> None:
    now_uj = int(counter.read_text())
    counter.write_text(f"{(now_uj + microjoules) % (RANGE_UJ + 1)}\n")


async def create(powercap: Path, idle_baseline_s: float = 0.0) -> EnergyMeter:
    return await RaplEnergy(idle_baseline_s, powercap=str(powercap)).create(None)
