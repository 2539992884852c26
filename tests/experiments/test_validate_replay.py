"""The replay of real episodes, with the mock server as the real engine."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from analysis.plan import read_plan
from bellman.engines.openai.child import child_server
from bellman.errors import ConfigError, RunError
from bellman.settings import read_settings
from experiments.execute import execute
from experiments.studies.replay import given_or_reported
from tests.experiments.conftest import read_config
from tests.servers import MOCK

REPLAY = "experiment=validate_replay"


def test_a_simulated_engine_is_no_measure(tmp_path):
    overrides = (
        REPLAY,
        "engine=simulated",
        "engine/bank=extractive",
        f"folder={tmp_path / 'run'}",
        *LIMITS,
    )
    with pytest.raises(ConfigError, match=r"^engine=simulated: must be a real one.* engine=vllm"):
        execute(read_config(*overrides), Console(quiet=True))


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("study.output_tokens=19", "study.output_tokens"),
        ("study.rounds=0", "study.rounds"),
        ("study.batch_requests=[1,32]", "study.batch_requests"),
        ("study.prompt_words=[]", "study.prompt_words"),
        ("study.mixed_requests=16", "study.mixed_requests"),
        ("study.kv_blocks=0", "study.kv_blocks"),
        ("study.output_tokens=2200", "study.max_model_len"),
    ],
)
def test_refuses_batches_that_cannot_be_run(override, key):
    with pytest.raises(ConfigError, match=key):
        read_settings(read_config(REPLAY, override))


def test_limits_that_nobody_says_are_asked_for():
    with pytest.raises(RunError, match=r"study\.kv_blocks=null"):
        given_or_reported("kv_blocks", None, None)
    assert given_or_reported("kv_blocks", None, 5824) == 5824
    assert given_or_reported("kv_blocks", 100, 5824) == 100


def test_the_cache_that_the_server_says_must_hold_a_whole_sequence():
    study = read_settings(read_config(REPLAY)).study
    with pytest.raises(RunError, match=r"study\.kv_blocks=10: must hold study\.max_model_len=4096"):
        study.limits({"kv_blocks": 10, "kv_block_size": 16})
    limits = study.limits({"kv_blocks": 5824, "kv_block_size": 16})
    assert (limits["kv_blocks"], limits["block_size"]) == (5824, 16)


LIMITS = (
    "study.max_num_seqs=4",
    "study.max_num_batched_tokens=2048",
    "study.max_model_len=4096",
    "study.batch_requests=[1,4]",
    "study.prompt_words=[20]",
    "study.output_tokens=20",
    "study.mixed_requests=10",
    "study.rounds=1",
)


@pytest.mark.slow
@pytest.mark.alone
async def test_replays_what_a_real_server_served(tmp_path):
    """Four places, 30 ms a word: the simulation must find the same queue."""
    async with child_server([MOCK]) as url:
        behaviour = {"obeys": True, "places": 4, "ttft_s": 0.02, "gap_s": 0.03}
        folder = await run_replay(url, behaviour, tmp_path / "run")
    comparisons = json.loads((folder / "validation.json").read_text())
    found = {(row["arm"], row["metric"]): row for row in comparisons}
    assert set(found) == {(arm, metric) for arm in ("none", "bellman") for metric in METRICS}
    assert found["none", "e2e mean"]["measured"] > 2 * found["bellman", "e2e mean"]["measured"]
    for arm in ("none", "bellman"):
        assert abs(found[arm, "e2e mean"]["error"]) < 0.3
    assert (folder / "figures" / "replay_latency.png").exists()
    (fit,) = [cell.content for cell in read_plan(folder) if cell.kind == "FitCell"]
    assert fit["step_time"]["floor_ms"] == pytest.approx(30, rel=0.3)
    assert [batch["requests"] for batch in fit["batches"]] == [1, 4, 10]
    assert len(fit["drift"]) == 3
    assert max(map(abs, fit["drift"])) < 0.5


METRICS = ("e2e mean", "e2e p50", "e2e p90", "e2e p99", "ttft mean", "ttft p90", "completed")


async def run_replay(url: str, behaviour: dict[str, object], folder: Path) -> Path:
    """Run the experiment against a mock server, in a process as a user would."""
    import asyncio
    import sys

    import aiohttp

    async with aiohttp.ClientSession() as pool:
        await pool.put(f"{url}/mock", json=behaviour)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "run.py", REPLAY, "engine=openai", f"engine.base_url={url}"),
        *("model=mock", "energy=none", f"folder={folder}", *LIMITS),
        *("arrivals.capacity_rps=2", "arrivals.overload=2", "arrivals.warmup_s=1"),
        *("arrivals.calm_s=2", "arrivals.congested_s=15", "arrivals.recovery_s=2"),
        *("application.default_words=53", "congestion.q_high=12", "repeats=1"),
        *("corpus.limit_documents=3", "drain_s=60", "signal.period_s=0.2"),
    )
    assert await process.wait() == 0
    return folder
