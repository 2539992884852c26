"""Run in a process of its own, with the stub as its driver: prints what a meter says.

The stub's clock is the virtual loop's, so that joules are known exactly. The "server" is a process
of this one, and it has a child; in STUB_PROCESSES `server`, `worker`, `mine` and `gone` stand for
their ids, this process's, and one that nobody has here.
"""

import asyncio
import ctypes
import json
import os
import subprocess
from dataclasses import asdict

import psutil

from bellman.energy.auto import AutoEnergy
from bellman.energy.base import LocalServer
from bellman.energy.nvml import NvmlEnergy
from bellman.load.schedule import Phase
from bellman.timeline import energy_windows
from tests.energy.in_place import ReadingInPlace

BASELINE_S = 2.0
EPISODE_S = 10.0
METERS: dict[str, NvmlEnergy | AutoEnergy] = {
    "nvml": NvmlEnergy(0.1, BASELINE_S),
    "auto": AutoEnergy(0.1, BASELINE_S),
}
PHASES = [Phase("first", 0.0, EPISODE_S / 2, 1.0), Phase("second", EPISODE_S / 2, EPISODE_S, 1.0)]
NOBODY = 2**22 + 1
"""Above the largest process id that Linux gives."""


async def measure(meter_name: str, server: LocalServer | None) -> None:
    """Read at the start, in the middle and at the end of an episode."""
    loop = asyncio.get_running_loop()
    meter = await METERS[meter_name].create(server)
    before_s = loop.time()
    await meter.start()
    started_s = loop.time()
    readings = [await meter.read()]
    for edge in (1, 2):
        await asyncio.sleep(started_s + edge * EPISODE_S / 2 - loop.time())
        readings.append(await meter.read())
    report = await meter.stop()
    windows = energy_windows(
        PHASES,
        [*readings, readings[-1]],
        report,
        repeat=0,
        arm="none",
        start_s=started_s,
        incidents=meter.incidents(),
    )
    print(
        json.dumps(
            {
                "started_after_s": started_s - before_s,
                "readings": [asdict(reading) for reading in readings],
                "report": asdict(report),
                "windows": {window.window: asdict(window) for window in windows},
            }
        )
    )


def start_server(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a process that has a child; its first line comes when it has."""
    server = subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    )
    assert server.stdout is not None
    server.stdout.readline()
    return server


def main(meter_name: str, *, has_stub: bool) -> None:
    """Measure with the stub, if there is one, and with a server, if processes are named."""
    virtual_loop = ReadingInPlace()
    clock = ctypes.CFUNCTYPE(ctypes.c_double)(virtual_loop.time)
    stub = ctypes.CDLL("libnvidia-ml.so.1") if has_stub else None
    if stub is not None:
        stub.stub_set_clock(clock)
    processes = os.environ.get("STUB_PROCESSES")
    with asyncio.Runner(loop_factory=lambda: virtual_loop) as runner:
        if processes is None or stub is None:
            runner.run(measure(meter_name, None))
            return
        visible = os.environ.get("STUB_SERVER_VISIBLE")
        process = start_server({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
        (worker,) = psutil.Process(process.pid).children()
        names = {"server": process.pid, "worker": worker.pid, "mine": os.getpid(), "gone": NOBODY}
        for name, number in names.items():
            processes = processes.replace(name, str(number))
        stub.stub_set_processes(processes.encode())
        try:
            runner.run(measure(meter_name, LocalServer(process_id=process.pid)))
        finally:
            worker.kill()
            process.kill()
            process.wait()
