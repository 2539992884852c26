"""A real vLLM server on the CPU, with SmolLM2-135M: one start, everything an episode needs."""

import asyncio
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import pandas as pd
import psutil
import pytest
from hydra import compose, initialize_config_dir

from bellman.admission.accept_all import AcceptAll
from bellman.build import build
from bellman.controllers.bellman import QueueLaw
from bellman.controllers.none import NoControl
from bellman.corpus.aclsum import AclSum
from bellman.engines.base import Control, EngineDied, Request
from bellman.responses.recorded import RecordedBank
from bellman.sensing.growth import mean_s
from tests.engines.vllm.conftest import MARK, ROOT, wait_until_gone

MODEL = ROOT / "models" / "smollm2-135m-instruct"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None or not (MODEL / "config.json").exists(),
        reason="vLLM or the model is not here: scripts/setup_cpu.sh",
    ),
]
NO_CONTROL = Control(NoControl(), AcceptAll(), 0.2)
FULL_AT_ONE = Control(QueueLaw(q_low=0, q_high=1, max_step=1.0), AcceptAll(), 0.2)


def a_request(forced: int | None = None) -> Request:
    prompt = "The river rose after a week of rain.\n\nSummarize the text above in one sentence."
    return Request(1, "d1", prompt, 20, 40, forced_output_tokens=forced)


async def test_serves_signals_forces_lengths_and_dies_in_the_open(tmp_path: Path) -> None:
    mark = f"+engine.environment.{MARK}={tmp_path}"
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", overrides=["engine=vllm_cpu", f"model={MODEL}", mark])
    engine = build(config.engine, "engine").create(None, tmp_path)
    async with engine:
        async with engine.session(NO_CONTROL) as session:
            before = (await session.state()).observation
            headers: list[str] = []
            completion = await session.generate(a_request(), headers.extend)
            assert completion.text
            assert completion.prompt_tokens > engine.count_tokens(a_request().prompt) > 10
            assert 1 <= completion.output_tokens <= 40
            assert completion.finish_reason in {"stop", "length"}
            assert headers == ["0.0000"]
            forced = await session.generate(a_request(forced=57), lambda _: None)
            assert (forced.text, forced.output_tokens) == (None, 57)
            await delays_of_two_requests(session, before)
        async with engine.session(FULL_AT_ONE) as session:
            long = asyncio.create_task(session.generate(a_request(forced=100), lambda _: None))
            # The door counts it at once, vLLM's gauges with the next step.
            while not long.done() and not shows_one_running(await session.state()):
                await asyncio.sleep(0.1)
            assert not long.done(), "it never showed as running"
            await long
            await kill_the_engine_core(session)
        assert engine.describe()["versions"]["torch"].startswith("2.")
    wait_until_gone(tmp_path)


def shows_one_running(state) -> bool:
    return state.level == 1.0 and state.observation.running == 1 and state.observation.kv_usage > 0


async def delays_of_two_requests(session, before) -> None:
    """What laws on delays need comes from vLLM's own histograms, read in its process."""
    while (now := (await session.state()).observation).e2e_count < before.e2e_count + 2:
        await asyncio.sleep(0.1)
    assert now.ttft_count == before.ttft_count + 2
    assert now.queue_delay_count == before.queue_delay_count + 2
    queued_s, first_s = mean_s(before, now, "queue_delay"), mean_s(before, now, "ttft")
    assert 0 <= queued_s <= first_s < mean_s(before, now, "e2e") < 60
    assert now.oldest_waiting_s == 0


async def kill_the_engine_core(session) -> None:
    """The API server lives on for a moment; the request in flight must still end as a death."""
    in_flight = asyncio.create_task(session.generate(a_request(forced=500), lambda _: None))
    await asyncio.sleep(1.0)
    mine = psutil.Process(os.getpid()).children(recursive=True)
    core = [process for process in mine if "EngineCore" in " ".join(process.cmdline())]
    assert core, [process.cmdline() for process in mine]
    core[0].kill()
    with pytest.raises(EngineDied, match="the vLLM server is gone"):
        await in_flight


async def test_the_whole_experiment_on_a_real_server(tmp_path: Path) -> None:
    """`summarize_congested_cpu` as a user runs it, but one short repeat at a given rate."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "run.py", "experiment=summarize_congested_cpu", "repeats=1"),
        *("arrivals.capacity_rps=0.6", "arrivals.overload=4", "arrivals.congested_s=10"),
        *("arrivals.warmup_s=1", "arrivals.calm_s=2", "arrivals.recovery_s=1"),
        *(
            "corpus.limit_documents=8",
            "energy=auto",
            f"model={MODEL}",
            f"folder={tmp_path / 'run'}",
        ),
        f"+engine.environment.{MARK}={tmp_path}",
        cwd=ROOT,
    )
    assert await process.wait() == 0
    wait_until_gone(tmp_path)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["source"] == "measured"
    none, bellman = (summary["arms"][arm]["phases"]["congested"] for arm in ("none", "bellman"))
    assert bellman["output_words_mean"] < none["output_words_mean"]
    assert bellman["e2e_mean_s"] < none["e2e_mean_s"]
    quality = pd.read_parquet(tmp_path / "run" / "quality.parquet")
    assert len(quality) > 0
    assert (tmp_path / "run" / "report.html").exists()


async def test_a_model_without_weights_writes_as_long_as_a_recorded_one(tmp_path: Path) -> None:
    """A folder without weights, `load-format=dummy`: the bank's lengths, and no quality."""
    shape = tmp_path / "shape"
    shutil.copytree(MODEL, shape, ignore=shutil.ignore_patterns("*.safetensors"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "run.py", "experiment=summarize_congested_cpu", "repeats=1"),
        *("engine.arguments.load-format=dummy", "engine.length_forced=true"),
        *("engine/bank=smollm2_135m", "corpus.longest_words=null", "corpus.limit_documents=4"),
        *("arrivals.capacity_rps=0.5", "arrivals.overload=4", "arrivals.congested_s=6"),
        *("arrivals.warmup_s=1", "arrivals.calm_s=2", "arrivals.recovery_s=1"),
        "drain_s=600",  # however slow this machine is
        *(f"model={shape}", f"folder={tmp_path / 'run'}", f"+engine.environment.{MARK}={tmp_path}"),
        cwd=ROOT,
    )
    assert await process.wait() == 0
    wait_until_gone(tmp_path)
    bank = RecordedBank("bank_smollm2_135m_aclsum.parquet").open(AclSum(limit_documents=4).load())
    requests = pd.read_parquet(tmp_path / "run" / "requests.parquet")
    assert set(requests["status"]) == {"ok"}
    assert requests["text_id"].isna().all()
    assert len(set(requests["asked_words"])) > 1  # the treatment asked for less
    for row in requests.itertuples():
        recorded = bank.lookup(row.document_id, row.asked_words).output_tokens
        assert row.output_tokens == min(recorded, row.max_tokens)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["source"] == "measured"
    assert summary["response_source"].startswith("no text: lengths recorded from")
    assert all(arm["quality"] is None for arm in summary["arms"].values())
