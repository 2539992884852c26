"""Measures with the driver stub, in a process of its own (`read_stub.py`)."""

import ctypes
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
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


# Its processes have imported everything when they begin.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.energy.read_stub"])


def run_with_stub(library: Path, script: str, *arguments: str, **environment: str) -> Any:
    """Run a script of this folder with the stub as its driver; return what it printed."""
    run = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        env={
            **without_cuda(),
            "LD_LIBRARY_PATH": str(library),
            "PYTHONPATH": str(HERE.parents[1]),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return json.loads(run.stdout)


def measure(library: Path | None, meter: str = "nvml", **environment: str) -> Any:
    """Read at the start, in the middle and at the end of an episode in virtual time."""
    with tempfile.TemporaryDirectory() as folder:
        printed, errors = Path(folder) / "printed", Path(folder) / "errors"
        process = FORKS.Process(
            target=_measure, args=(library, meter, without_cuda() | environment, printed, errors)
        )
        process.start()
        process.join()
        assert (process.exitcode, errors.read_text()) == (0, "")
        return json.loads(printed.read_text())


def _measure(
    library: Path | None, meter: str, environment: dict[str, str], printed: Path, errors: Path
) -> None:
    for path, descriptor in ((printed, 1), (errors, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    if library is not None:  # from now on it is what its name stands for
        ctypes.CDLL(str(library / "libnvidia-ml.so.1"))
    from tests.energy import read_stub

    read_stub.main(meter, has_stub=library is not None)


def without_cuda() -> dict[str, str]:
    """Return the environment without what this machine says of its own cards."""
    return {key: value for key, value in os.environ.items() if not key.startswith("CUDA_")}


def joules(result: Any) -> list[float | None]:
    """Return the energy of the three readings."""
    return [reading["energy_j"] for reading in result["readings"]]
