"""Runs of `run.py` with a meter on the driver stub: what it doubts stands beside the claim."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bellman.energy.server_process import listening_on
from bellman.engines.openai.child import child_server
from tests.energy.stub import BOTH
from tests.servers import MOCK, run_experiment

pytestmark = [pytest.mark.slow, pytest.mark.alone]


async def run(url: str, folder: Path) -> tuple[Any, Any]:
    """Run the experiment in seconds; return its summary and its energy claim."""
    await run_experiment(
        *("experiment=summarize_congested", "engine=openai", f"engine.base_url={url}/v1"),
        *("energy=nvml", "energy.idle_baseline_s=0.2", "repeats=1", f"folder={folder}"),
        *("arrivals.capacity_rps=10", "arrivals.warmup_s=1", "arrivals.calm_s=1"),
        *("arrivals.congested_s=11", "arrivals.recovery_s=1", "corpus.limit_documents=8"),
    )
    claims = json.loads((folder / "claims.json").read_text())["claims"]
    (energy,) = (claim for claim in claims if claim["claim"] == "energy")
    return json.loads((folder / "summary.json").read_text()), energy


async def test_the_servers_card_alone_is_counted_and_else_the_claim_says_so(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    monkeypatch.setenv("STUB_GPUS", BOTH)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    async with child_server([MOCK]) as url:
        (server,) = listening_on(urlsplit(url).port)
        monkeypatch.setenv("STUB_PROCESS_IDS", f";{server}")
        summary, energy = await run(url, tmp_path / "known")
        length_s = 11.0
        congested = summary["arms"]["none"]["phases"]["congested"]
        assert congested["energy_j"] == pytest.approx(100 * length_s, rel=0.2)
        assert not any("whether the server uses them" in text for text in summary["warnings"])
        assert energy["estimate"] is not None

        monkeypatch.setenv("STUB_PROCESS_IDS", "")
        summary, energy = await run(url, tmp_path / "unknown")
        said = "2 cards (all, CUDA_VISIBLE_DEVICES is not set), whether the server uses them or not"
        assert any(said in text for text in summary["warnings"])
        assert any(said in text for text in energy["caveats"])
