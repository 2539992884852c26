"""The `openai` package and `aiperf`, unchanged, against the gateway.

They live in an environment of their own: BELLMAN_CLIENTS_PYTHON names its interpreter, and
without it one is made.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bellman.engines.openai.child import child_server
from tests.servers import MOCK, gateway

pytestmark = pytest.mark.slow

OPENAI = """
import json, sys, openai
client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
messages = [{"role": "user", "content": "hi"}]
raw = client.chat.completions.with_raw_response.create(model="mock", messages=messages)
whole = raw.parse()
raw_stream = client.chat.completions.with_raw_response.create(
    model="mock", messages=messages, stream=True, stream_options={"include_usage": True}
)
chunks = list(raw_stream.parse())
try:
    client.chat.completions.create(model="mock", messages="refuse")
    error = None
except openai.RateLimitError as refused:
    error = refused.message
print(json.dumps({
    "levels": [r.headers["x-bellman-congestion"] for r in (raw, raw_stream)],
    "whole": [whole.choices[0].message.content, whole.usage.completion_tokens],
    "stream": "".join(c.choices[0].delta.content or "" for c in chunks if c.choices),
    "stream_tokens": chunks[-1].usage.completion_tokens,
    "models": [model.id for model in client.models.list()],
    "error": error,
}))
"""
TOKENIZER = """
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
vocabulary = {character: index for index, character in enumerate(alphabet)}
tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(sys.argv[1])
"""
"""aiperf's own tokenizers need the network; bytes are tokens enough to make prompts."""


async def run(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-3000:]
    return output.decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    given = os.environ.get("BELLMAN_CLIENTS_PYTHON")
    if given:
        return given
    folder = tmp_path_factory.mktemp("clients")
    await run(sys.executable, "-m", "venv", str(folder))
    interpreter = str(folder / "bin" / "python")
    await run(interpreter, "-m", "pip", "install", "-q", "openai", "aiperf")
    return interpreter


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url() -> AsyncIterator[str]:
    async with child_server([MOCK]) as upstream_url, gateway(upstream_url) as gateway_url:
        yield gateway_url


async def test_openai(python: str, url: str) -> None:
    seen = json.loads(await run(python, "-c", OPENAI, url))
    assert "the mock is full" in seen.pop("error")
    assert seen == {
        "levels": ["0.0000", "0.0000"],
        "whole": ["One two three.", 4],
        "stream": "One two three.",
        "stream_tokens": 4,
        "models": ["mock"],
    }


@pytest.mark.parametrize("streaming", [["--streaming"], []])
async def test_aiperf(python: str, url: str, streaming: list[str], tmp_path: Path) -> None:
    tokenizer, results = tmp_path / "tokenizer", tmp_path / "results"
    await run(python, "-c", TOKENIZER, str(tokenizer))
    await run(
        *(python, "-m", "aiperf", "profile", "--model", "mock", "--url", url, *streaming),
        *("--endpoint-type", "chat", "--tokenizer", str(tokenizer), "--use-server-token-count"),
        *("--synthetic-input-tokens-mean", "50", "--request-count", "20", "--concurrency", "4"),
        *("--ui", "none", "--output-artifact-dir", str(results)),
    )
    report = json.loads((results / "profile_export_aiperf.json").read_text())
    assert report["request_count"]["avg"] == 20
    assert report["error_summary"] == []
    assert report["output_sequence_length"]["avg"] == 4
    assert ("time_to_first_token" in report) == bool(streaming)
