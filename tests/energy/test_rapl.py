"""Which counters of RAPL are added up, and what is said of them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bellman.energy.none import UnmeasuredEnergy
from bellman.energy.rapl import RaplEnergy
from bellman.errors import ConfigError
from tests.energy.in_place import run
from tests.energy.powercap import RANGE_UJ, advance, create, write_zone


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
        rapl = await create(tmp_path)
        await rapl.start()
        for counter in counters:
            advance(counter, 200_000)
        return await rapl.read(), await rapl.stop()

    reading, report = run(episode)
    assert reading.energy_j == pytest.approx(0.6)
    assert (report.method, report.source) == ("rapl", "measured")
    assert "the whole machine's (package-0, package-0 dram, package-1)" in report.reason
    assert len(report.details["zones_left_out"]) == 3
    assert len(report.details["zones"]) == 3


def test_wrap_arounds_between_readings_are_counted(tmp_path: Path) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 5)

    async def episode() -> list[float | None]:
        rapl = await create(tmp_path)
        await rapl.start()
        joules = []
        for _ in range(5):  # 0.7 J a second wraps every 1.4 seconds
            advance(counter, 700_000)
            await asyncio.sleep(1.5)  # the background reads in between
            joules.append((await rapl.read()).energy_j)
        await rapl.stop()
        return joules

    assert run(episode) == pytest.approx([0.7, 1.4, 2.1, 2.8, 3.5])


def test_idle_baseline_is_not_part_of_the_episode(tmp_path: Path) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)

    async def episode() -> Any:
        rapl = await create(tmp_path, idle_baseline_s=4.0)
        asyncio.get_running_loop().call_later(2.0, advance, counter, 600_000)
        await rapl.start()
        first = await rapl.read()
        advance(counter, 300_000)
        return first, await rapl.read(), await rapl.stop()

    first, last, report = run(episode)
    assert (first.energy_j, last.energy_j) == pytest.approx((0, 0.3))
    assert report.details["idle_power_w"] == pytest.approx(0.15)


def test_both_packages_of_another_driver_where_the_first_has_none(tmp_path: Path) -> None:
    counters = [
        write_zone(tmp_path, "intel-rapl:0", "psys", 0),
        write_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 0),
        write_zone(tmp_path, "intel-rapl-mmio:1", "package-1", 0),
    ]
    reading, report = run(lambda: after_each_counts(tmp_path, counters))
    assert reading.energy_j == pytest.approx(0.4)
    assert report.details["zones_left_out"] == ["intel-rapl:0 (psys): a part or a sum of others"]


def test_the_same_package_of_two_drivers_is_counted_once_and_its_memory_found(
    tmp_path: Path,
) -> None:
    counters = [
        write_zone(tmp_path, "intel-rapl:0", "package-0", 0),
        write_zone(tmp_path, "intel-rapl:0:0", "core", 0),
        write_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 0),
        write_zone(tmp_path, "intel-rapl-mmio:0:0", "dram", 0),
    ]
    reading, report = run(lambda: after_each_counts(tmp_path, counters))
    assert reading.energy_j == pytest.approx(0.4)
    assert [zone["name"] for zone in report.details["zones"]] == ["package-0", "package-0 dram"]
    assert "intel-rapl-mmio:0 (package-0): counted already" in report.details["zones_left_out"]


@pytest.mark.parametrize(
    "zones",
    [
        [("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1")],
        [("intel-rapl:0", "package-0-die-0"), ("intel-rapl:1", "package-0-die-1")],
        [("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-0")],  # a kernel that mis-numbers
        [("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:1", "package-1")],
    ],
)
def test_two_packages_are_two(tmp_path: Path, zones: list[tuple[str, str]]) -> None:
    counters = [write_zone(tmp_path, zone, name, 0) for zone, name in zones]
    reading, _ = run(lambda: after_each_counts(tmp_path, counters))
    assert reading.energy_j == pytest.approx(0.4)


async def after_each_counts(powercap: Path, counters: list[Path]) -> Any:
    """Read after every counter has gone on by 0.2 J."""
    rapl = await create(powercap)
    await rapl.start()
    for counter in counters:
        advance(counter, 200_000)
    return await rapl.read(), await rapl.stop()


def test_memory_alone_is_no_machine(tmp_path: Path) -> None:
    write_zone(tmp_path, "intel-rapl:0:0", "dram", 0)
    assert "no CPU package" in run(lambda: create(tmp_path)).reason


def test_the_joules_are_said_to_be_the_whole_machines(tmp_path: Path) -> None:
    write_zone(tmp_path, "intel-rapl:0", "package-0", 0)

    async def episode() -> Any:
        rapl = await create(tmp_path)
        await rapl.start()
        return rapl.incidents()

    (doubt,) = run(episode)
    assert doubt.touches(0, 1)
    assert "every other program's included, and no GPU's" in doubt.text


@pytest.mark.parametrize(("file", "content"), [("energy_uj", "n/a"), ("max_energy_range_uj", "0")])
def test_a_zone_that_makes_no_sense_is_null(tmp_path: Path, file: str, content: str) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    (counter.parent / file).write_text(content)
    absent = run(lambda: create(tmp_path))
    assert isinstance(absent, UnmeasuredEnergy) and file in absent.reason


def test_no_counters_is_null_with_the_reason(tmp_path: Path) -> None:
    absent = run(lambda: create(tmp_path))
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
    refused = run(lambda: create(tmp_path))
    assert isinstance(refused, UnmeasuredEnergy)
    assert "energy_uj may be read by root only (sudo chmod a+r" in refused.reason


def test_ranges() -> None:
    with pytest.raises(ConfigError, match=r"^idle_baseline_s=-1"):
        RaplEnergy(-1.0)
    with pytest.raises(ConfigError, match=r"^read_period_s=0"):
        RaplEnergy(0.0, read_period_s=0.0)
