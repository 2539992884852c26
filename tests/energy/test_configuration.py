"""The energy group's files, and the meter that is none."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from bellman.build import build
from bellman.energy.none import NoMeter
from bellman.energy.nvml import NvmlEnergy
from bellman.errors import ConfigError

CONF = Path(__file__).parents[2] / "conf" / "energy"


@pytest.mark.parametrize("file", sorted(CONF.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_meter_reads_joules_or_gives_a_reason(file: Path) -> None:
    node = OmegaConf.load(file)
    assert isinstance(node, DictConfig)
    if "idle_baseline_s" in node:
        node.idle_baseline_s = 0

    async def episode() -> Any:
        meter = await build(node, "energy").create(None)
        await meter.start()
        return await meter.read(), await meter.stop()

    reading, report = asyncio.run(episode())
    assert (reading.energy_j is None) == (report.source is None)
    assert report.source == "measured" or report.reason


def test_none_says_that_none_was_asked_for() -> None:
    async def episode() -> Any:
        meter = await NoMeter().create(None)
        await meter.start()
        return await meter.read(), await meter.stop()

    reading, report = asyncio.run(episode())
    assert reading.energy_j is None
    assert (report.method, report.source) == ("none", None)
    assert "energy=none" in report.reason


def test_ranges() -> None:
    with pytest.raises(ConfigError, match=r"^sample_period_s=0"):
        NvmlEnergy(0.0, 5.0)
