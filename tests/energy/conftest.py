import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the driver stub, compiled."""
    folder = tmp_path_factory.mktemp("driver")
    target = folder / "libnvidia-ml.so.1"
    source = Path(__file__).parent / "nvml_stub.c"
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the driver library with")
    options = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([compiler, *options, "-o", str(target), str(source)], check=True)
    return folder
