"""The gateway's count of joules goes on over the end of a meter, and makes nothing up."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bellman.energy.none import UnmeasuredEnergy
from bellman.energy.rapl import RaplEnergy
from bellman.gateway.energy import count_energy
from tests.energy.in_place import run

WATTS = 50
UNREAD_S = 10.0
LONGEST_UNREAD_S = 40.0
ANEW_S = 2 * UNREAD_S
"""Long enough for one meter to be given up and the next to have read."""


class Package:
    """The counter of a package that draws 50 W, in Linux's powercap."""

    def __init__(self, powercap: Path) -> None:
        self.zone = powercap / "intel-rapl:0"
        self.zone.mkdir(parents=True)
        (self.zone / "name").write_text("package-0\n")
        (self.zone / "max_energy_range_uj").write_text("262143328850\n")
        self.energy_uj = 1_000_000
        self.readable = True

    async def draw(self) -> None:
        while True:
            text = f"{self.energy_uj}\n" if self.readable else ""
            (self.zone / "energy_uj").write_text(text)
            await asyncio.sleep(1.0)
            self.energy_uj += WATTS * 1_000_000


Play = Callable[[Package, list[float]], Any]


def counted(tmp_path: Path, play: Play) -> list[float]:
    """Play a scene beside the count; return the counted joules at the times that it returns."""
    package = Package(tmp_path)
    parts: list[float] = []
    open_meter = RaplEnergy(0.0, powercap=str(tmp_path)).create

    async def main() -> list[float]:
        tasks = [
            asyncio.create_task(package.draw()),
            asyncio.create_task(
                count_energy(lambda: open_meter(None), lambda _, joules: parts.append(joules))
            ),
        ]
        seen: list[float] = await play(package, parts)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return seen

    seen = run(main)
    assert min(parts) >= 0  # a counter never goes down
    return seen


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("bellman.gateway.energy.UNREAD_S", UNREAD_S)
    monkeypatch.setattr("bellman.gateway.energy.LONGEST_UNREAD_S", LONGEST_UNREAD_S)
    caplog.set_level(logging.WARNING)


def test_what_a_meter_bridges_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def play(package: Package, parts: list[float]) -> list[float]:
        await asyncio.sleep(20)
        package.readable = False
        await asyncio.sleep(UNREAD_S / 2)
        package.readable = True
        await asyncio.sleep(20 - UNREAD_S / 2)
        return [sum(parts)]

    assert counted(tmp_path, play) == pytest.approx([40 * WATTS], abs=3 * WATTS)
    outage, end = messages(caplog)
    assert outage.startswith("no energy is measured: rapl: ") and "not a number" in outage
    assert end == "energy is measured again; that of 0 s is not counted"


def test_a_driver_that_is_loaded_anew_is_metered_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(package: Package, parts: list[float]) -> list[float]:
        await asyncio.sleep(20)
        package.energy_uj = 0  # a counter that begins again ends its meter for good
        await asyncio.sleep(ANEW_S)
        before_j = sum(parts)
        await asyncio.sleep(20)
        return [before_j, sum(parts) - before_j]

    before_j, after_j = counted(tmp_path, play)
    assert 20 * WATTS < before_j < (20 + ANEW_S - UNREAD_S + 5) * WATTS
    assert after_j == pytest.approx(20 * WATTS, abs=3 * WATTS)
    outage, end = messages(caplog)
    assert "more than a package can draw" in outage
    lost_s = float(end.removeprefix("energy is measured again; that of ").partition(" s ")[0])
    assert UNREAD_S <= lost_s < UNREAD_S + 5
    # Neither what was lost is made up, nor more lost than is said.
    assert before_j == pytest.approx((20 + ANEW_S - lost_s) * WATTS, abs=3 * WATTS)


def test_a_long_outage_is_said_once_and_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(package: Package, parts: list[float]) -> list[float]:
        await asyncio.sleep(10)
        package.readable = False
        await asyncio.sleep(200)
        before_j = sum(parts)
        package.readable = True
        await asyncio.sleep(2 * LONGEST_UNREAD_S)
        return [before_j, sum(parts) - before_j]

    before_j, after_j = counted(tmp_path, play)
    assert before_j == pytest.approx(10 * WATTS, abs=3 * WATTS)
    assert 0.5 * LONGEST_UNREAD_S * WATTS < after_j < 2 * LONGEST_UNREAD_S * WATTS
    assert len(messages(caplog)) == 2


def test_a_machine_without_a_meter_is_asked_ever_less_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    opened: list[float] = []

    async def none() -> UnmeasuredEnergy:
        opened.append(asyncio.get_running_loop().time())
        return UnmeasuredEnergy("none here")

    async def main() -> None:
        task = asyncio.create_task(count_energy(none, lambda *_: pytest.fail("made up")))
        await asyncio.sleep(200)
        task.cancel()

    run(main)
    assert opened == [0, 10, 30, 70, 110, 150, 190]
    assert messages(caplog) == ["no energy is measured: none here"]
