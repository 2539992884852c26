"""Counters of RAPL that cannot be read for a while, jump, or stand still."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.energy.in_place import ReadingInPlace, run
from tests.energy.powercap import advance, create, write_zone


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
