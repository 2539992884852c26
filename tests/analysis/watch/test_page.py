"""The page as a process serves it: in a real Chromium, and beside a real run."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from bellman.folder_lock import FolderLock
from tests.analysis.watch import chromium
from tests.analysis.watch.run_folder import Writer, ended, energy, sample
from tests.servers import MOCK, ROOT, Mock

pytestmark = pytest.mark.slow
TEXT = "(document.body?.innerText ?? '')"
with_chromium = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="no chromium here: apt-get install chromium"
)


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    arguments = ["-m", "analysis.watch", str(tmp_path / "run"), "--port", "0"]
    async with child_server(arguments, {"PYTHONPATH": str(ROOT)}) as served:
        yield served


async def view(url: str) -> dict[str, Any]:
    async with aiohttp.ClientSession() as pool, pool.get(f"{url}/view") as response:
        assert response.status == 200
        found: dict[str, Any] = await response.json()
        return found


@with_chromium
async def test_a_run_is_seen_in_chromium_as_it_goes_on(url: str, tmp_path: Path) -> None:
    async with chromium.page(tmp_path / "profile") as page:
        await page.open(url)
        await page.until(f"{TEXT}.includes('there is no such folder yet')")
        writer = Writer(tmp_path / "run")
        lock = FolderLock(writer.folder)
        writer.status("running")
        writer.plan("EpisodeCell", "EpisodeCell")
        now_s = time.time()
        writer.cell(0, at_s=now_s - 600)
        said = {"warnings": ["<img src=x onerror=alert(1)>"], "energy": energy(45_671.4)}
        writer.done(0, at_s=now_s, kind="EpisodeCell", source="measured", **said)
        writer.cell(1, at_s=now_s)
        curve = [sample(float(t), level=t / 10, waiting=t, energy_j=400.0 * t) for t in range(9)]
        writer.append(1, "timeline", *curve)
        writer.append(1, "requests", *(ended(number, 2.0) for number in range(30)))
        writer.append(1, "requests", ended(30, 0.0, "timeout"))
        await page.until(f"{TEXT}.includes('1 timeout')")
        seen = await page.value(TEXT)
        for expected in (
            "a_night",
            "measured",
            "holds this folder",
            "1 of 2",
            "45,671 J",
            "of 40 intended, 1 timeout",
            "30 ok",
            "8 / 7",
            "0.80",
            "2.0 s / lost",
            "3,200 J",
            "<img src=x onerror=alert(1)>",  # a text from the folder stays text
        ):
            assert expected in seen, (expected, seen)
        assert await page.value("document.images.length") == 0
        drawn = await page.value("document.querySelector('path').getAttribute('d')")
        assert drawn.startswith("M0.00,40.00L12.50,36.20L")
        assert drawn.endswith("L100.00,9.60")  # level 0.8 of 38 high

        writer.append(1, "timeline", sample(9.0, level=None, waiting=None))
        await page.until(f"{TEXT}.includes('n/a / 7')")
        writer.append(1, "timeline", sample(10.0, level=1.0))
        await page.until(
            "document.querySelector('path').getAttribute('d').endsWith('M100.00,2.00')"
        )
        lock.release()
        await page.until(f"{TEXT}.includes('killed: it was running, but no process holds')")
        resources = "performance.getEntriesByType('resource').map(one => new URL(one.name).origin)"
        assert set(await page.value(resources)) == {url}  # nothing from elsewhere
        (tmp_path / "page.png").write_bytes(await page.picture())


@with_chromium
async def test_a_page_whose_watcher_is_gone_says_so(tmp_path: Path) -> None:
    arguments = ["-m", "analysis.watch", str(tmp_path / "run"), "--port", "0"]
    async with chromium.page(tmp_path / "profile") as page:
        async with child_server(arguments, {"PYTHONPATH": str(ROOT)}) as url:
            await page.open(url)
            await page.until(f"{TEXT}.includes('there is no such folder yet')")
        await page.until(f"{TEXT}.includes('The watcher does not answer')")


async def test_only_loopback_s_own_names_are_answered(url: str) -> None:
    async with aiohttp.ClientSession() as pool:
        for host, status in [("localhost:9", 200), ("127.0.0.1", 200), ("evil.example", 400)]:
            async with pool.get(f"{url}/view", headers={"host": host}) as response:
                assert response.status == status
        async with pool.get(f"{url}/page.js") as response:
            assert response.headers["content-security-policy"].startswith("default-src 'self'")
        async with pool.get(f"{url}/../view.py") as response:
            assert response.status == 404


async def test_a_real_run_beside_it(url: str, tmp_path: Path) -> None:
    """A measured run against the mock server: seen while it runs, and when it is done."""
    async with child_server([MOCK]) as upstream, open_pool(None) as pool:
        await Mock(pool, upstream).behave(obeys=True, gap_s=0.002, places=4)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "run.py", "experiment=summarize_congested", "engine=openai"),
            *(f"engine.base_url={upstream}/v1", "repeats=1", "arm=[none]", "energy=none"),
            *("arrivals.capacity_rps=4", "arrivals.warmup_s=1", "arrivals.calm_s=1"),
            *("arrivals.congested_s=4", "arrivals.recovery_s=1", "corpus.limit_documents=4"),
            f"folder={tmp_path / 'run'}",
            cwd=ROOT,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        seen = []
        while process.returncode is None:
            seen.append(await view(url))
            await asyncio.sleep(0.3)
    assert process.returncode == 0
    running = [one for one in seen if one["open"] and one["open"][0]["sample"]]
    assert running
    assert all(one["holds"] and one["source"] == "measured" for one in running)
    assert running[-1]["open"][0]["ended"]["ok"] > 0
    assert running[-1]["open"][0]["sample"]["energy_j"] is None
    last = await view(url)
    assert (last["state"], last["cells_done"]) == ("done; no process holds this folder", 1)
    assert (last["energy_j"], last["open"]) == (None, [])


async def test_the_terminal_shows_the_same_once_where_it_is_none(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run")
    writer.plan("EpisodeCell")
    writer.cell(0, at_s=0, source="simulated")
    writer.append(0, "timeline", sample(2.0, level=0.25))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "analysis.watch", str(writer.folder), "--terminal"),
        cwd=ROOT,
        env={"COLUMNS": "200", "PYTHONPATH": str(ROOT), "PATH": ""},
        stdout=asyncio.subprocess.PIPE,
    )
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0
    for expected in ("a_night (simulated)", "no process holds", "cut", "0.25", "n/a", "in blocks"):
        assert expected in output
