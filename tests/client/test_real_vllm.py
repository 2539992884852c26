"""An adapted client of a real vLLM server on the CPU, with SmolLM2-135M."""

import importlib.util
import socket
from pathlib import Path
from typing import Any

import openai
import pytest
from hydra import compose, initialize_config_dir

from bellman.admission.accept_all import AcceptAll
from bellman.build import build
from bellman.client import adapt
from bellman.controllers.threshold import Threshold
from bellman.engines.base import Control
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
TEXT = "The river rose after a week of rain, and the village moved its cattle to the hills. "
REQUEST: Any = {
    "messages": [{"role": "user", "content": f"{TEXT * 3}\n\nRetell it in {{words}} words."}],
    "temperature": 0.0,
}
EVERY_REQUEST_CONGESTS = Control(Threshold(limit=0), AcceptAll(), 0.02)


async def test_the_level_of_a_real_server_shortens_the_next_answer(tmp_path: Path) -> None:
    overrides = ["engine=vllm_cpu", f"model={MODEL}", f"+engine.environment.{MARK}={tmp_path}"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", overrides=[*overrides, f"engine.port={port}"])
    engine = build(config.engine, "engine").create(None, tmp_path)
    async with engine, engine.session(EVERY_REQUEST_CONGESTS):
        sdk = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
        client = adapt(sdk, task="answer", default_words=200, fill_max_tokens=True)
        model = (await client.models.list()).data[0].id

        # A whole answer's headers come at its end: by then its own request has congested this law.
        whole = await client.chat.completions.create(model=model, **REQUEST)
        assert whole.choices[0].message.content
        assert (client.word_budget.level, client.word_budget.words) == (1.0, 50)

        stream = await client.chat.completions.create(
            model=model, **REQUEST, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        assert any(chunk.choices and chunk.choices[0].delta.content for chunk in chunks)
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens <= client.word_budget.max_tokens(50) == 151
        assert chunks[-1].usage.prompt_tokens <= whole.usage.prompt_tokens
        assert client.word_budget.counts["received"] == 2
    wait_until_gone(tmp_path)
