"""Run in a process of its own with the stub's folder in LD_LIBRARY_PATH: prints what a meter says.

The stub's clock is the virtual loop's, so that joules are known exactly.
"""

import asyncio
import ctypes
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bellman.energy.auto import AutoEnergy
from bellman.energy.nvml import NvmlEnergy
from bellman.virtual_time import VirtualTimeLoop

BASELINE_S = 2.0
EPISODE_S = 10.0
METERS: dict[str, NvmlEnergy | AutoEnergy] = {
    "nvml": NvmlEnergy(0.1, BASELINE_S),
    "auto": AutoEnergy(0.1, BASELINE_S),
}


class ReadingInPlace(VirtualTimeLoop):
    """A driver's read takes no virtual time, so that no thread is needed for it."""

    def run_in_executor(self, executor: object, read: Callable[..., Any], *arguments: Any) -> Any:
        future = self.create_future()
        future.set_result(read(*arguments))
        return future


async def measure(meter_name: str) -> None:
    """Read at the start, in the middle and at the end of an episode."""
    meter = METERS[meter_name].create()
    loop = asyncio.get_running_loop()
    before_s = loop.time()
    await meter.start()
    started_after_s = loop.time() - before_s
    readings = [meter.read()]
    for _ in range(2):
        await asyncio.sleep(EPISODE_S / 2)
        readings.append(meter.read())
    report = await meter.stop()
    print(
        json.dumps(
            {
                "started_after_s": started_after_s,
                "readings": [asdict(reading) for reading in readings],
                "report": asdict(report),
            }
        )
    )


if __name__ == "__main__":
    virtual_loop = ReadingInPlace()
    clock = ctypes.CFUNCTYPE(ctypes.c_double)(virtual_loop.time)
    if len(sys.argv) > 2:
        ctypes.CDLL("libnvidia-ml.so.1").stub_set_clock(clock)
    with asyncio.Runner(loop_factory=lambda: virtual_loop) as runner:
        runner.run(measure(sys.argv[1]))
