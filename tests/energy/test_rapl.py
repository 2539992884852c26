import asyncio
from pathlib import Path
from typing import Any

import pytest

from bellman.energy.base import EnergyMeter
from bellman.energy.none import UnmeasuredEnergy
from bellman.energy.rapl import RaplEnergy
from bellman.errors import ConfigError
from tests.energy.in_place import ReadingInPlace, run

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


def test_a_counter_that_vanishes_makes_the_energy_unknown(tmp_path: Path) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)

    async def episode() -> Any:
        rapl = await create(tmp_path)
        await rapl.start()
        counter.unlink()
        return await rapl.read(), await rapl.stop()

    reading, report = run(episode)
    assert reading.energy_j is None
    assert report.source is None
    assert "energy_uj: No such file" in report.reason


def hide(counter: Path, fault: str) -> None:
    """Make a counter unreadable, the way a driver does for a while."""
    if fault == "no file":
        counter.unlink(missing_ok=True)
    elif fault == "an error":
        counter.unlink(missing_ok=True)
        counter.mkdir()
    else:
        counter.write_text(fault)


def show(counter: Path, energy_uj: int) -> None:
    if counter.is_dir():
        counter.rmdir()
    counter.write_text(f"{energy_uj}\n")


FAULTS = ["", "n/a\n", "no file", "an error"]


@pytest.mark.parametrize("fault", FAULTS)
def test_what_was_counted_while_a_counter_could_not_be_read_is_not_lost(
    tmp_path: Path, fault: str
) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 100_000)
    steady = write_zone(tmp_path, "intel-rapl:1", "package-1", 0)
    for zone in (counter, steady):
        (zone.parent / "max_energy_range_uj").write_text("262143328850")

    async def episode() -> Any:
        rapl = await create(tmp_path)
        await rapl.start()
        hide(counter, fault)
        for _ in range(30):
            await asyncio.sleep(1.0)
            advance_far(steady, 1_000_000)
        unread = await rapl.read()
        show(counter, 60_100_000)
        return unread, await rapl.read(), rapl.incidents(), await rapl.stop()

    unread, read, incidents, report = run(episode)
    assert unread.energy_j is None
    assert unread.reason.startswith("rapl: ") and "energy_uj" in unread.reason
    assert read.energy_j == pytest.approx(90) and read.reason is None
    (noted,) = (one for one in incidents if one.text == unread.reason)
    assert noted.touches(1, 30) and not noted.touches(33, 40)
    assert report.source == "measured"
    assert "energy_uj" not in report.reason
    assert [zone["energy_j"] for zone in report.details["zones"]] == pytest.approx([60, 30])


def advance_far(counter: Path, microjoules: int) -> None:
    counter.write_text(f"{int(counter.read_text()) + microjoules}\n")


@pytest.mark.parametrize("fault", FAULTS)
def test_an_edge_waits_for_a_counter_that_is_back_within_two_seconds(
    tmp_path: Path, fault: str
) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)

    async def episode(back_after_s: float) -> Any:
        show(counter, 0)
        rapl = await create(tmp_path)
        await rapl.start()
        hide(counter, fault)
        asyncio.get_running_loop().call_later(back_after_s, show, counter, 500_000)
        reading = await rapl.read()
        await rapl.stop()
        return reading

    reading = run(lambda: episode(1.5))
    assert reading.energy_j == pytest.approx(0) and reading.time_s == 0  # the instant of the edge
    assert run(lambda: episode(2.5)).energy_j is None


def test_a_counter_that_stays_unreadable_leaves_the_end_unknown(tmp_path: Path) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)

    async def episode() -> Any:
        rapl = await create(tmp_path)
        await rapl.start()
        advance(counter, 200_000)
        first = await rapl.read()
        hide(counter, "")
        return first, await rapl.read(), await rapl.stop()

    first, last, report = run(episode)
    assert (first.energy_j, last.energy_j) == (pytest.approx(0.2), None)
    assert report.source == "measured" and "says '', not a number" in report.reason


def test_a_counter_that_could_not_be_read_for_too_long_may_have_gone_round_twice(
    tmp_path: Path,
) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    (counter.parent / "max_energy_range_uj").write_text("60000000000")  # 60 s at the largest power

    async def episode(seconds: float) -> Any:
        show(counter, 0)
        rapl = await create(tmp_path)
        await rapl.start()
        hide(counter, "")
        await asyncio.sleep(seconds)
        show(counter, 7_000_000)
        return await rapl.read(), await rapl.stop()

    assert run(lambda: episode(50))[0].energy_j == pytest.approx(7)
    reading, report = run(lambda: episode(70))
    assert reading.energy_j is None
    assert "was not read for 70 s" in reading.reason and "more than once" in report.reason


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


def test_a_counter_that_was_not_read_for_too_long_may_have_gone_round_twice(tmp_path: Path) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)

    async def episode() -> Any:
        rapl = await create(tmp_path)
        await rapl.start()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ReadingInPlace)
        advance(counter, 300_000)
        first = await rapl.read()
        loop.stall(60.0)
        advance(counter, 300_000)
        return first, await rapl.read(), await rapl.stop()

    first, last, report = run(episode)
    assert (first.energy_j, last.energy_j) == (pytest.approx(0.3), None)
    assert "was not read for 60 s" in last.reason and "more than once" in report.reason
    assert report.source == "measured"


def test_a_counter_that_begins_again_from_0_is_not_taken_for_one_that_went_round(
    tmp_path: Path,
) -> None:
    counter = write_zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    (counter.parent / "max_energy_range_uj").write_text("262143328850")

    async def episode() -> Any:
        rapl = await create(tmp_path)
        await rapl.start()
        await asyncio.sleep(0.5)
        counter.write_text("40000000")
        first = await rapl.read()
        counter.write_text("1000000")  # the driver was loaded anew
        return first, await rapl.read()

    first, last = run(episode)
    assert (first.energy_j, last.energy_j) == (pytest.approx(35), None)
    assert "counted 262104 J in 0.0 s, more than a package can draw" in last.reason


def test_a_package_that_does_not_move_is_null_and_memory_that_does_not_is_doubted(
    tmp_path: Path,
) -> None:
    package = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    memory = write_zone(tmp_path, "intel-rapl:0:0", "dram", 0)

    async def episode(moves: Path) -> Any:
        rapl = await create(tmp_path)
        await rapl.start()
        for _ in range(20):
            await asyncio.sleep(1.0)
            advance(moves, 1000)
        return await rapl.read(), rapl.incidents()

    reading, _ = run(lambda: episode(memory))
    assert reading.energy_j is None
    assert reading.reason == "rapl: the energy counter of package-0 does not move"
    reading, incidents = run(lambda: episode(package))
    assert reading.energy_j == pytest.approx(0.02)
    assert "rapl: the energy counter of package-0 dram does not move" in incidents[1].text


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
