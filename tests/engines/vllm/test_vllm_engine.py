"""The whole life of a server process, against a stand-in for vLLM."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bellman.admission.accept_all import AcceptAll
from bellman.controllers.bellman import QueueLaw
from bellman.controllers.none import NoControl
from bellman.engines.base import Control, EngineDied, EngineSession, Request
from bellman.engines.openai.connections import open_pool
from bellman.engines.vllm import process
from bellman.engines.vllm.config import VllmEngine
from bellman.errors import ConfigError, RunError

from .conftest import MARK, ROOT, STAND_IN, marked_processes, wait_until_gone

NO_CONTROL = Control(NoControl(), AcceptAll(), 0.05)
ALWAYS_FULL = Control(QueueLaw(q_low=0, q_high=0.001, max_step=1.0), AcceptAll(), 0.05)


def a_request() -> Request:
    return Request(1, "d1", "Summarize.", asked_words=50, max_tokens=100)


async def generated_tokens(session: EngineSession) -> int | None:
    observation = (await session.state()).observation
    return observation and observation.generated_tokens_total


async def test_serves_episodes_with_their_own_law_and_leaves_nothing(stand_in, tmp_path):
    port = process.free_port(None)
    arguments = {"max_num_seqs": 16, "enforce-eager": True, "api_key": "argument-secret"}
    engine = stand_in("orphan", port=port, arguments=arguments)
    async with engine, open_pool(None) as pool:
        async with engine.session(NO_CONTROL) as session:
            headers: list[str] = []
            completion = await session.generate(a_request(), headers.extend)
            async with asyncio.timeout(60):
                # Three warm-up requests came before.
                while await generated_tokens(session) != 4 * 4:
                    await asyncio.sleep(NO_CONTROL.period_s)
        assert completion.text == "One two three."
        assert headers == ["0.0000"]
        await pool.put(f"http://127.0.0.1:{port}/mock", json={"ttft_s": 3600.0})
        async with engine.session(ALWAYS_FULL) as session:
            first = asyncio.create_task(session.generate(a_request(), lambda _: None))
            async with asyncio.timeout(60):
                while (await session.state()).level != 1.0:
                    await asyncio.sleep(ALWAYS_FULL.period_s)
            await pool.put(f"http://127.0.0.1:{port}/mock", json={})
            await session.generate(a_request(), headers.extend)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
        assert headers[1:] == ["1.0000"]
        assert len(marked_processes(tmp_path)) == 3  # supervisor, server, its child
    assert not marked_processes(tmp_path)
    log = (tmp_path / "vllm.log").read_text()
    assert "--max-num-seqs 16 --enforce-eager --api-key ***" in log
    assert engine.source == "measured"
    assert engine.response_source == "model"


@pytest.mark.slow
async def test_a_server_killed_in_the_middle_is_dead_with_its_reason(stand_in, tmp_path):
    engine = stand_in()
    async with engine, engine.session(NO_CONTROL) as session:
        server = psutil.Process(engine.process.process_id).children()[0]
        server.kill()
        with pytest.raises(EngineDied, match=r"gone: killed by SIGKILL; its log is .*vllm\.log"):
            await session.generate(a_request(), lambda _: None)
        with pytest.raises(EngineDied):
            await session.state()
        wait_until_gone(tmp_path)


async def test_a_server_that_ends_at_the_start_is_an_error_with_its_last_words(stand_in, tmp_path):
    with pytest.raises(RunError) as caught:
        await stand_in("crash").__aenter__()
    first, *tail = str(caught.value).splitlines()
    assert first.startswith("the vLLM server did not start: it ended with exit status 1; its log")
    assert tail[-1] == "  ValueError: no such architecture"
    assert not marked_processes(tmp_path)


@pytest.mark.slow
async def test_a_server_that_is_never_healthy_runs_into_the_deadline(stand_in, tmp_path):
    with pytest.raises(RunError, match="not healthy after 1 s"):
        await stand_in("silent", start_deadline_s=1.0).__aenter__()
    assert not marked_processes(tmp_path)


@pytest.mark.parametrize(
    ("failure", "arguments", "way"),
    [
        ("", {}, "reset"),
        ("no_reset", {}, "first line"),
        ("no_reset", {"enable-prefix-caching": False}, "disabled"),
    ],
)
async def test_no_episode_finds_the_prompts_of_another(stand_in, failure, arguments, way):
    engine = stand_in(failure, arguments=arguments)
    async with engine, engine.session(NO_CONTROL) as session:
        report = session.report()
    assert (report.prefix_cache, report.invalid_reasons) == (way, ())
    assert engine.describe()["prefix_cache"] == way


@pytest.mark.slow
async def test_a_server_deaf_to_sigterm_is_ended_all_the_same(stand_in, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "STOP_S", 0.5)  # less than the supervisor's patience
    engine = stand_in("stubborn")
    async with engine:
        assert len(marked_processes(tmp_path)) == 3
    assert not marked_processes(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_nothing_outlives_a_run_that_is_killed(tmp_path, model_folder, number):
    run = subprocess.Popen(
        [sys.executable, "-c", RUN_AND_WAIT, str(model_folder)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(STAND_IN), str(ROOT))),
            "STAND_IN": "orphan",
            MARK: str(tmp_path),
        },
        stdout=subprocess.PIPE,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == b"healthy\n"
    assert len(marked_processes(tmp_path)) == 4
    run.send_signal(number)
    run.wait()
    run.stdout.close()
    wait_until_gone(tmp_path)


RUN_AND_WAIT = """
import asyncio, sys
from pathlib import Path
from bellman.engines.vllm.config import VllmEngine

async def main():
    async with VllmEngine(sys.argv[1], warmup_requests=0).create(None, Path(sys.argv[1])):
        print("healthy", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


async def test_a_port_in_use_is_one_line(stand_in):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=rf"^engine\.port={port}: Address already in use; .*$"):
            await stand_in(port=port).__aenter__()


async def test_without_vllm_the_error_says_how_to_install_it(monkeypatch, model_folder, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(RunError, match=r"scripts/setup_cpu\.sh"):
        await VllmEngine(str(model_folder)).create(None, tmp_path).__aenter__()


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("", "model folder .* is not there: run `python scripts/prepare_model"),
        ("config.json", "has no config.json"),
        ("tokenizer.json", "has no tokenizer"),
        ("model.safetensors", r"lacks \*\.safetensors"),
    ],
)
async def test_a_model_folder_that_is_not_whole_is_one_line(stand_in, tmp_path, lost, message):
    folder = tmp_path / "model"
    if lost:
        (folder / lost).unlink()
    else:
        folder = tmp_path / "elsewhere"
    with pytest.raises(RunError, match=message) as caught:
        await stand_in(model=str(folder)).__aenter__()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"model": None}, "^model"),
        ({"model": "m", "arguments": {"served_model_name": "x"}}, "^arguments.served"),
        ({"model": "m", "sampling": {"max_tokens": 5}}, "^sampling.max_tokens"),
        ({"model": "m", "port": 70000}, "^port"),
        ({"model": "m", "start_deadline_s": 0.0}, "^start_deadline_s"),
        ({"model": "m", "warmup_requests": -1}, "^warmup_requests"),
        ({"model": "m", "length_forced": True}, "^length_forced"),
    ],
)
def test_refuses_values_that_cannot_be_run(values, key):
    with pytest.raises(ConfigError, match=key):
        VllmEngine(**values)


def test_says_where_the_model_came_from(stand_in, model_folder: Path):
    (model_folder / "bellman_provenance.json").write_text('{"revision": "r1"}')
    assert stand_in().describe()["model_provenance"] == {"revision": "r1"}
