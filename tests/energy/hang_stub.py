"""Run like `read_stub.py`, but in real time: a driver that hangs, or a sampler that dies.

The stub's clock is set by hand, so that joules do not depend on how fast this machine is.
"""

import asyncio
import ctypes
import json
import sys
from types import SimpleNamespace
from typing import Any

from bellman.energy import nvml, nvml_meter
from bellman.energy.gpu_log import GpuLog
from bellman.energy.nvml import NvmlEnergy

FAR_AWAY_S = 600.0
TIME = SimpleNamespace(s=0.0)
clock = ctypes.CFUNCTYPE(ctypes.c_double)(lambda: TIME.s)
stub = ctypes.CDLL("libnvidia-ml.so.1")
CONFIG = NvmlEnergy(0.01, 0.0)


async def until_it_hangs() -> None:
    while not stub.stub_hangs():
        await asyncio.sleep(0.001)


async def late() -> dict[str, Any]:
    """Read while the driver hangs; it answers after all."""
    nvml_meter.DEADLINE_S = FAR_AWAY_S
    meter = await CONFIG.create(None)
    await meter.start()
    loop = asyncio.get_running_loop()
    before = await meter.read()
    stub.stub_set_hang(1)
    await until_it_hangs()
    events = ["the driver hangs"]
    reading = asyncio.create_task(meter.read())
    reading.add_done_callback(lambda _: events.append("read"))
    await asyncio.sleep(0.05)
    events.append("the loop runs")
    asked_by_s = loop.time()
    TIME.s += 3.0
    events.append("the driver answers")
    stub.stub_set_hang(0)
    after = await reading
    later = await meter.read()  # for an instant at which the counter had moved already
    await meter.stop()
    return {
        "events": events,
        "energy_j": round(later.energy_j - before.energy_j, 3),
        "for_the_instant_of_the_call": after.time_s < asked_by_s,
    }


async def never() -> dict[str, Any]:
    """Read while the driver hangs, and end while it does."""
    nvml_meter.DEADLINE_S = FAR_AWAY_S
    meter = await CONFIG.create(None)
    await meter.start()
    nvml_meter.DEADLINE_S = 0.2
    stub.stub_set_hang(1)
    await until_it_hangs()
    reading = await meter.read()
    hangs_still = bool(stub.stub_hangs())
    await meter.stop()
    return {
        "energy_j": reading.energy_j,
        "reason": reading.reason,
        "hangs_still": hangs_still,
        "incident": [incident.text for incident in meter.incidents()],
    }


async def opening() -> dict[str, Any]:
    """Open a driver that hangs."""
    nvml.OPEN_DEADLINE_S = 0.2
    meter = await CONFIG.create(None)
    return {"reason": (await meter.read()).reason}


async def hangs() -> dict[str, Any]:
    return {"late": await late(), "never": await never(), "opening": await opening()}


async def sampler() -> dict[str, Any]:
    """Read after the sampler has died of a fault in the program."""
    nvml_meter.DEADLINE_S = FAR_AWAY_S
    meter = await CONFIG.create(None)
    await meter.start()
    before = await meter.read()
    GpuLog.add_power = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    while len(meter.incidents()) < 2:
        await asyncio.sleep(0.001)
    TIME.s += 3.0
    await meter.read()
    after = await meter.read()  # for an instant at which the counter had moved already
    await meter.stop()
    said = [one.text for one in meter.incidents() if one.text.startswith("nvml: ")]
    return {"incidents": said, "energy_j": round(after.energy_j - before.energy_j, 3)}


nvml_meter.MOVES_WITHIN_S = FAR_AWAY_S  # the counter stands still until the clock is set
stub.stub_set_clock(clock)
print(json.dumps(asyncio.run(sampler() if "sampler" in sys.argv else hangs())))
