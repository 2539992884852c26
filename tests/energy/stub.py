"""Measures with the driver stub, in a process of its own (`read_stub.py`)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# NVML's order is not the bus order: the card behind NVML index 0 is CUDA's index 1.
FIRST = "GPU-bbbb2222,00000000:9A:00.0,NVIDIA H100,600"
SECOND = "GPU-aaaa1111,00000000:1B:00.0,NVIDIA H100,100"
BOTH = f"{FIRST},1,0,0,0;{SECOND},1,0,0,0"
EPISODE_S = 10.0
BEGIN_S = 2.0
"""When the episode begins by the stub's clock: after the idle baseline."""


def run_with_stub(library: Path | None, script: str, *arguments: str, **environment: str) -> Any:
    """Run a script of this folder with the stub as its driver; return what it printed."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("CUDA_")}
    if library is not None:
        inherited["LD_LIBRARY_PATH"] = str(library)
    run = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        env={**inherited, "PYTHONPATH": str(HERE.parents[1]), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return json.loads(run.stdout)


def measure(library: Path | None, meter: str = "nvml", **environment: str) -> Any:
    """Read at the start, in the middle and at the end of an episode in virtual time."""
    stub = [] if library is None else ["stub"]
    return run_with_stub(library, "read_stub.py", meter, *stub, **environment)


def joules(result: Any) -> list[float | None]:
    """Return the energy of the three readings."""
    return [reading["energy_j"] for reading in result["readings"]]
