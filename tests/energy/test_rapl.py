import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bellman.energy.base import EnergyMeter
from bellman.energy.none import UnmeasuredEnergy
from bellman.energy.rapl import RaplEnergy
from bellman.errors import ConfigError
from bellman.virtual_time import VirtualTimeLoop

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


def run(episode: Callable[[], Awaitable[Any]]) -> Any:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(episode())  # type: ignore[arg-type]


def meter(powercap: Path, idle_baseline_s: float = 0.0) -> EnergyMeter:
    return RaplEnergy(idle_baseline_s, powercap=str(powercap)).create()


def test_packages_and_memory_are_added_up_and_parts_left_out(tmp_path: Path) -> None:
    counters = [
        write_zone(tmp_path, zone, name, 100)
        for zone, name in [
            ("intel-rapl:0", "package-0"),
            ("intel-rapl:1", "package-1"),
            ("intel-rapl:0:1", "dram"),
            ("intel-rapl:0:0", "core"),
            ("intel-rapl:2", "psys"),
            ("intel-rapl-mmio:0", "package-0"),
        ]
    ]

    async def episode() -> Any:
        rapl = meter(tmp_path)
        await rapl.start()
        for counter in counters:
            advance(counter, 200_000)
        return rapl.read(), await rapl.stop()

    reading, report = run(episode)
    assert reading.energy_j == pytest.approx(0.6)
    assert (report.method, report.source, report.reason) == ("rapl", "measured", None)
    assert len(report.details["zones"]) == 3


def test_wrap_arounds_between_readings_are_counted(tmp_path: Path) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 5)

    async def episode() -> list[float | None]:
        rapl = meter(tmp_path)
        await rapl.start()
        joules = []
        for _ in range(5):  # 0.7 J a second wraps every 1.4 seconds
            advance(counter, 700_000)
            await asyncio.sleep(1.5)  # the background reads in between
            joules.append(rapl.read().energy_j)
        await rapl.stop()
        return joules

    assert run(episode) == pytest.approx([0.7, 1.4, 2.1, 2.8, 3.5])


def test_idle_baseline_is_not_part_of_the_episode(tmp_path: Path) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)

    async def episode() -> Any:
        rapl = meter(tmp_path, idle_baseline_s=4.0)
        asyncio.get_running_loop().call_later(2.0, advance, counter, 600_000)
        await rapl.start()
        first = rapl.read()
        advance(counter, 300_000)
        return first, rapl.read(), await rapl.stop()

    first, last, report = run(episode)
    assert (first.energy_j, last.energy_j) == pytest.approx((0, 0.3))
    assert report.details["idle_power_w"] == pytest.approx(0.15)


def test_a_counter_that_vanishes_makes_the_energy_unknown(tmp_path: Path) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)

    async def episode() -> Any:
        rapl = meter(tmp_path)
        await rapl.start()
        counter.unlink()
        return rapl.read(), await rapl.stop()

    reading, report = run(episode)
    assert reading.energy_j is None
    assert report.source is None
    assert "energy_uj: No such file" in report.reason


def test_no_counters_is_null_with_the_reason(tmp_path: Path) -> None:
    absent = meter(tmp_path)
    assert isinstance(absent, UnmeasuredEnergy)
    assert absent.reason.startswith("rapl: no CPU package in")


def test_missing_permission_is_null_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    read_text = Path.read_text

    def refuse(path: Path) -> str:  # file modes do not stop root, as whom tests may run
        if path == counter:
            raise PermissionError(13, "Permission denied")
        return read_text(path)

    monkeypatch.setattr(Path, "read_text", refuse)
    refused = meter(tmp_path)
    assert isinstance(refused, UnmeasuredEnergy)
    assert "energy_uj may be read by root only (sudo chmod a+r" in refused.reason


def test_ranges() -> None:
    with pytest.raises(ConfigError, match=r"energy\.idle_baseline_s=-1"):
        RaplEnergy(-1.0)
    with pytest.raises(ConfigError, match=r"energy\.read_period_s=0"):
        RaplEnergy(0.0, read_period_s=0.0)
