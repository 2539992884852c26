"""What a run leaves when the server, the disk or the user misbehaves: real processes."""

import asyncio
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bellman.records import REQUESTS, STATUSES, read_json_lines
from tests.servers import Mock

pytestmark = [pytest.mark.slow, pytest.mark.alone]
ROOT = Path(__file__).parents[2]
RATE_RPS, SECONDS, DRAIN_S = 10, 4, 2
INTENDED = 2 * RATE_RPS * SECONDS
"""Of both arms."""
IN_TIME = "drain_s=120"
"""However slow the machine is: it ends when nothing is outstanding."""


async def start(
    mock: Mock, folder: Path, *overrides: str, **how: Any
) -> asyncio.subprocess.Process:
    """Start a run of constant arrivals on the mock."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "run.py", "engine=openai", f"engine.base_url={mock.url}"),
        *("engine.gateway=false", "energy=none", "repeats=1", f"folder={folder}"),
        *("arrivals=steady", "arrivals.process=constant", "arrivals.load=null"),
        *(f"arrivals.rate_rps={RATE_RPS}", "arrivals.warmup_s=0"),
        *(f"arrivals.duration_s={SECONDS}", f"drain_s={DRAIN_S}", "quality.random_draws=1"),
        *overrides,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        **how,
    )


async def finish(process: asyncio.subprocess.Process, deadline_s: float = 600) -> tuple[int, str]:
    """Wait for the run's end; returns its exit status and standard error."""
    async with asyncio.timeout(deadline_s):
        _, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, errors.decode()


def lines_of(folder: Path) -> list[Path]:
    """Return the request lines of the episodes that a run is at or has ended."""
    found = folder.glob("episodes/*/requests.jsonl")
    return [path for path in found if ".unfinished-" not in path.parent.name]


async def recorded(folder: Path, lines: int) -> None:
    """Wait until so many requests are on disk."""
    async with asyncio.timeout(600):
        while sum(path.read_bytes().count(b"\n") for path in lines_of(folder)) < lines:
            await asyncio.sleep(0.05)


def requests(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "requests.parquet")


def counts(folder: Path) -> dict[str, int]:
    frame = requests(folder)
    assert len(frame) == INTENDED
    assert not frame.duplicated(["arm", "request_id"]).any()
    assert set(frame["status"]) <= set(STATUSES)
    return {str(status): int(count) for status, count in frame["status"].value_counts().items()}


def summary(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return content


async def test_a_server_that_never_answers_ends_the_run_by_its_deadline(mock, tmp_path):
    await mock.behave(never_answers=True)
    code, errors = await finish(await start(mock, tmp_path / "run"))
    assert code == 0, errors
    assert counts(tmp_path / "run") == {"unfinished": INTENDED}
    for arm in summary(tmp_path / "run")["arms"].values():
        assert arm["slo_attainment"] == 0
        assert arm["e2e_mean_s"] is None
        assert arm["completed"] == 0


async def test_a_request_deadline_ends_each_request(mock, tmp_path):
    await mock.behave(never_answers=True)
    deadlines = ("request_timeout_s=1", "engine.request_timeout_s=60", IN_TIME)
    code, errors = await finish(await start(mock, tmp_path / "run", *deadlines))
    assert code == 0, errors
    assert counts(tmp_path / "run") == {"timeout": INTENDED}


async def test_a_server_that_refuses_half_of_all_requests(mock, tmp_path):
    await mock.behave(refuse_every=2, gap_s=0.02)  # at once there would be no tpot
    code, errors = await finish(await start(mock, tmp_path / "run", IN_TIME))
    assert code == 0, errors
    assert counts(tmp_path / "run") == {"ok": INTENDED // 2, "rejected": INTENDED // 2}
    for arm in summary(tmp_path / "run")["arms"].values():
        assert arm["slo_attainment"] == pytest.approx(0.5)
        assert arm["shares"]["rejected"] == pytest.approx(0.5)


async def test_a_server_that_cuts_every_stream_still_leaves_a_summary(mock, tmp_path):
    await mock.behave(cut_after=2)
    code, errors = await finish(await start(mock, tmp_path / "run", IN_TIME))
    assert code == 0, errors
    assert counts(tmp_path / "run") == {"error": INTENDED}
    assert requests(tmp_path / "run")["reason"].notna().all()
    assert all(arm["lost_share"] == 1 for arm in summary(tmp_path / "run")["arms"].values())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
async def test_a_signal_ends_the_run_with_everything_on_disk(mock, tmp_path, number):
    await mock.behave(ttft_s=0.2)
    folder = tmp_path / "run"
    process = await start(mock, folder, "arrivals.duration_s=60")
    await recorded(folder, 20)
    process.send_signal(number)
    code, errors = await finish(process)
    assert code == 130
    assert errors.count("\n") == 1 and errors.startswith("interrupted")
    assert json.loads((folder / "status.json").read_text())["status"] == "interrupted"
    frame = requests(folder)
    assert (frame["status"] == "ok").sum() >= 20
    # Those in flight and those that were never sent are there, too.
    assert set(frame["status"]) == {"ok", "unfinished"}
    assert len(frame) == RATE_RPS * 60
    (lines,) = lines_of(folder)
    assert len(frame) == read_json_lines(lines, REQUESTS).num_rows


async def test_a_killed_run_is_shown_by_one_command_and_goes_on_by_the_same_one(mock, tmp_path):
    folder = tmp_path / "run"
    process = await start(mock, folder, "arrivals.duration_s=60")
    await recorded(folder, 20)
    process.kill()
    await process.wait()
    assert not (folder / "summary.json").exists()
    again = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "analysis.present", str(folder)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    code, errors = await finish(again)
    assert code == 0, errors
    assert summary(folder)["cut_short"]
    assert (requests(folder)["status"] == "ok").sum() >= 20
    # What was measured until then is kept beside the episode that is measured anew.
    (lines,) = lines_of(folder)
    measured = lines.read_bytes()
    process = await start(mock, folder, "arrivals.duration_s=60")
    try:
        async with asyncio.timeout(600):
            while lines.exists() and lines.read_bytes().startswith(measured):
                await asyncio.sleep(0.05)
        await recorded(folder, 5)
        kept = lines.parent.with_name(f"{lines.parent.name}.unfinished-1") / lines.name
        assert kept.read_bytes() == measured
    finally:
        process.kill()
        await process.wait()


async def test_a_full_disk_ends_the_run_in_one_line_and_keeps_what_was_written(mock, tmp_path):
    folder = tmp_path / "run"

    def limit_files() -> None:
        # A file that may grow no further stands for a disk that is full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))

    process = await start(mock, folder, preexec_fn=limit_files)
    code, errors = await finish(process)
    assert code == 1
    assert errors.startswith("error: ") and errors.count("\n") == 1
    assert "File too large" in errors
    (lines,) = lines_of(folder)
    table = read_json_lines(lines, REQUESTS)
    assert table.num_rows >= 10
    assert set(table["status"].to_pylist()) <= set(STATUSES)
