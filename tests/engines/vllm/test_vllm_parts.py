"""Arguments, model folders and forced lengths."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.engines.base import Request
from bellman.engines.vllm.arguments import command_line
from bellman.engines.vllm.forced_length import with_bank_length
from bellman.engines.vllm.model_folder import missing_weights, names_a_folder
from bellman.engines.vllm.tokenizer import token_counter
from bellman.engines.vllm.warmup import warmup_request
from bellman.responses.base import Response


def test_arguments_are_written_as_vllm_reads_them():
    entries = {
        "max_num_seqs": 16,
        "enforce-eager": True,
        "enable-prefix-caching": False,
        "load-format": None,
        "kv-transfer-config": {"role": "both"},
        "api-key": ["a", "b"],
    }
    assert command_line(entries) == [
        *("--max-num-seqs", "16"),
        "--enforce-eager",
        "--no-enable-prefix-caching",
        *("--kv-transfer-config", '{"role": "both"}'),
        *("--api-key", "a", "b"),
    ]


def test_a_path_is_told_from_a_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert names_a_folder("models/smollm2")
    assert names_a_folder("/data/llama")
    assert names_a_folder("./llama")
    assert not names_a_folder("meta-llama/Llama-3.1-8B-Instruct")
    Path("meta-llama/Llama-3.1-8B-Instruct").mkdir(parents=True)
    assert names_a_folder("meta-llama/Llama-3.1-8B-Instruct")


def test_the_weights_that_an_index_names_must_be_there(tmp_path):
    weights = {"a": "one.safetensors", "b": "two.safetensors", "c": "one.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    (tmp_path / "one.safetensors").write_text("weights")
    (tmp_path / "two.safetensors").write_text("")
    assert missing_weights(tmp_path) == ["two.safetensors"]


class OneAnswer:
    kind = "recorded from a test"
    length_compliance = None

    def __init__(self, output_tokens: int) -> None:
        self.output_tokens = output_tokens

    def lookup(self, document_id: str, asked_words: int) -> Response:
        assert (document_id, asked_words) == ("d1", 50)
        return Response("text", 1, self.output_tokens, "stop")


@given(recorded=st.integers(1, 500), limit=st.integers(1, 500))
def test_a_forced_length_is_the_banks_up_to_the_requests_limit(recorded, limit):
    request = Request(1, "d1", "Summarize.", asked_words=50, max_tokens=limit)
    forced = with_bank_length(request, OneAnswer(recorded)).forced_output_tokens
    assert forced == min(recorded, limit)


def test_a_traces_length_stays():
    request = Request(1, "d1", "Summarize.", 50, 100, forced_output_tokens=7)
    assert with_bank_length(request, OneAnswer(50)) == request


def test_warm_up_prompts_differ():
    assert len({warmup_request(index).prompt for index in range(50)}) == 50


def test_counts_tokens_with_a_folders_own_tokenizer(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    count = token_counter(str(tmp_path))
    assert count is not None
    assert count("a b c a") == 4


def test_an_unreadable_tokenizer_counts_nothing(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    assert token_counter(str(tmp_path)) is None
