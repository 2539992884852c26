"""A vLLM engine whose server is a stand-in: a real process and real HTTP, without a model."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from bellman.engines.vllm.config import VllmEngine
from bellman.engines.vllm.engine import RunningVllm

STAND_IN = Path(__file__).parent / "stand_in"
ROOT = Path(__file__).parents[3]
MARK = "BELLMAN_TEST_MARK"
"""Environment variable that all processes of a test inherit."""


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_text("weights")
    return folder


@pytest.fixture
def stand_in(
    monkeypatch: pytest.MonkeyPatch, model_folder: Path, tmp_path: Path
) -> Callable[..., RunningVllm]:
    """Return a function that configures an engine on the stand-in, with a failure by name."""
    for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(STAND_IN))
    monkeypatch.setattr("bellman.engines.vllm.process.HEALTH_PERIOD_S", 0.05)

    def create(failure: str = "", **values: Any) -> RunningVllm:
        environment = {
            "PYTHONPATH": os.pathsep.join((str(STAND_IN), str(ROOT))),
            "STAND_IN": failure,
            MARK: str(tmp_path),
        }
        values = {"model": str(model_folder), "warmup_requests": 2, **values}
        return VllmEngine(environment=environment, **values).create(None, tmp_path)  # type: ignore[arg-type]

    return create


def marked_processes(tmp_path: Path) -> list[psutil.Process]:
    """Return the living processes that a test's server started, itself included."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(tmp_path) and process.status() != "zombie":
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_until_gone(tmp_path: Path, deadline_s: float = 120.0) -> None:
    """Wait until no process of the test's server is left; fail when some outlive the deadline."""
    end_s = time.monotonic() + deadline_s
    while left := marked_processes(tmp_path):
        assert time.monotonic() < end_s, f"left behind: {json.dumps([p.cmdline() for p in left])}"
        time.sleep(0.05)
