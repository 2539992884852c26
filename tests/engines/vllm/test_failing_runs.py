"""Whole runs that go wrong, against the stand-in: one clear line, records kept, nothing left."""

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.engines.vllm.conftest import MARK, ROOT, STAND_IN, marked_processes, wait_until_gone

pytestmark = pytest.mark.slow

SMALL = (
    "experiment=summarize_congested",
    "engine=vllm",
    "repeats=1",
    "energy=none",
    "corpus.limit_documents=4",
    "arrivals.capacity_rps=20",
    "arrivals.warmup_s=1",
    "arrivals.calm_s=2",
    "arrivals.congested_s=60",
)


class Run:
    """`run.py` as a process, with its server's processes marked."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.folder = tmp_path / "run"

    async def start(self, *overrides: str) -> asyncio.subprocess.Process:
        path = os.pathsep.join((str(STAND_IN), str(ROOT)))
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "run.py", *SMALL, f"folder={self.folder}", *overrides),
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "STAND_IN": "orphan",
                MARK: str(self.tmp_path),
            },
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )

    async def until_records(self, process: asyncio.subprocess.Process) -> None:
        """Wait until some requests are recorded."""
        async with asyncio.timeout(60):
            while self.lines() < 20:
                assert process.returncode is None, await error_of(process)
                await asyncio.sleep(0.1)

    def lines(self) -> int:
        files = self.folder.glob("episodes/*/requests.jsonl")
        return sum(file.read_bytes().count(b"\n") for file in files)

    def status(self) -> dict[str, str]:
        content: dict[str, str] = json.loads((self.folder / "status.json").read_text())
        return content


async def error_of(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    return (await process.stderr.read()).decode()


async def test_a_killed_server_costs_its_episode_and_is_started_again(model_folder, tmp_path):
    run = Run(tmp_path)
    short = ("arrivals.congested_s=10", "arrivals.recovery_s=1")
    process = await run.start(f"model={model_folder}", *short)
    await run.until_records(process)
    servers = [p for p in marked_processes(tmp_path) if "api_server" in " ".join(p.cmdline())]
    youngest = max(servers, key=lambda p: p.create_time())  # the other one is its supervisor
    youngest.kill()
    error = await error_of(process)
    assert await process.wait() == 1
    assert error.count("\n") == 1
    assert error.startswith("error: 1 episode failed (1/1 none: the vLLM server is gone: killed by")
    assert "SIGKILL; its log is " in error
    assert error.endswith("; the same command tries them again\n")
    assert run.status()["status"] == "failed"
    # The other arm's episode has everything; of the one that was cut what it had.
    table = pq.read_table(run.folder / "requests.parquet").to_pandas()
    ok = table[table["status"] == "ok"].groupby("arm").size()
    assert ok["bellman"] == (table["arm"] == "bellman").sum()
    assert 1 <= ok["none"] < (table["arm"] == "none").sum()
    (episode,) = json.loads((run.folder / "episodes.json").read_text())
    assert episode["arm"] == "bellman"
    assert (run.folder / "vllm.log").exists()
    wait_until_gone(tmp_path)


@pytest.mark.parametrize(
    ("number", "returned"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
)
async def test_nothing_is_left_of_a_run_that_is_ended(model_folder, tmp_path, number, returned):
    run = Run(tmp_path)
    process = await run.start(f"model={model_folder}")
    await run.until_records(process)
    process.send_signal(number)
    assert await process.wait() == returned
    wait_until_gone(tmp_path)
    assert run.lines() >= 20
    if number != signal.SIGKILL:
        assert run.status()["status"] == "interrupted"
        assert pq.read_table(run.folder / "requests.parquet").num_rows >= 20


async def test_a_port_in_use_is_one_line(model_folder, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        await fails_with(tmp_path, f"engine.port={port}", f"model={model_folder}", f"={port}: Addr")


async def test_a_model_folder_that_is_not_there_is_one_line(tmp_path):
    await fails_with(tmp_path, "model=/nowhere/model", "model folder /nowhere/model is not there")


async def fails_with(tmp_path: Path, *overrides_and_message: str) -> None:
    *overrides, message = overrides_and_message
    run = Run(tmp_path)
    process = await run.start(*overrides)
    error = await error_of(process)
    assert await process.wait() == 1
    assert error.count("\n") == 1
    assert message in error
    assert run.status()["status"] == "failed"
    wait_until_gone(tmp_path)
