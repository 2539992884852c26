"""Whole measured runs of `run.py` against the mock server process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.servers import Mock, run_experiment

pytestmark = [pytest.mark.slow, pytest.mark.alone]


async def run(mock: Mock, outputs: Path, *overrides: str) -> Path:
    """Run the experiment and return its folder."""
    await run_experiment(
        *("experiment=summarize_congested", "engine=openai", "repeats=1", "energy=none"),
        *(f"engine.base_url={mock.url}/v1", f"folder={outputs}"),
        *overrides,
    )
    return outputs


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


async def test_shorter_answers_relieve_a_full_server(mock: Mock, tmp_path: Path) -> None:
    """Eight places, 10 ms a word: 300 words are 3 s, so it serves 2.7 requests a second."""
    await mock.behave(obeys=True, places=8, gap_s=0.01)
    folder = await run(
        mock,
        tmp_path / "run",
        *("arrivals.capacity_rps=2.67", "arrivals.overload=1.6", "arrivals.warmup_s=2"),
        *("arrivals.calm_s=5", "arrivals.congested_s=30", "arrivals.recovery_s=5"),
        *("congestion.q_low=6", "congestion.q_high=16", "congestion.max_step=0.25"),
    )
    summary = read(folder, "summary.json")
    none, bellman = (summary["arms"][arm]["phases"]["congested"] for arm in ("none", "bellman"))
    assert summary["source"] == "measured"
    assert none["e2e_mean_s"] > 1.5 * bellman["e2e_mean_s"]
    assert none["completed_inside"] < bellman["completed_inside"]
    assert bellman["word_budget_mean"] < 300
    assert none["chunk_gap_p100_s"] >= none["chunk_gap_p99_s"] >= none["chunk_gap_p50_s"] > 0
    # The server obeys to the word, and its usage counts a token a word.
    assert bellman["output_words_mean"] == pytest.approx(bellman["word_budget_mean"])


async def test_faults_are_recorded_and_end_nothing(mock: Mock, tmp_path: Path) -> None:
    await mock.behave(
        refuse_every=5,
        cut_after=3,
        chunks=["a", " b", " c", " d"],
        headers=[["x-bellman-congestion", "0.5"], ["x-bellman-congestion", "nan"]],
    )
    folder = await run(
        mock,
        tmp_path / "run",
        *("engine.gateway=false", "arrivals.capacity_rps=10", "arrivals.warmup_s=0"),
        *("arrivals.calm_s=1", "arrivals.congested_s=3", "arrivals.recovery_s=1"),
    )
    files = folder.glob("episodes/*/requests.jsonl")
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {record["status"] for record in records} == {"rejected", "error"}
    assert all(record["reason"] and record["level"] is None for record in records)
    assert all(record["first_token_s"] is None for record in records)
    for episode in read(folder, "episodes.json"):
        sent = sum(record["arm"] == episode["arm"] for record in records)
        assert episode["signals_malformed"] == sent
        assert episode["signals_received"] == 0
