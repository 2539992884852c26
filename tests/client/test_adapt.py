"""The real `openai` package, adapted, against a server that answers what it was asked."""

import asyncio
import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from bellman.client import AdaptedAsyncOpenAI, AdaptedOpenAI, adapt

pytestmark = pytest.mark.slow
MESSAGES: Any = [{"role": "user", "content": "Summarize in at most {words} words."}]
HALF = {"x-give": '["0.5"]'}
"""At level 0.5 a default of 400 words is 200."""


class Question(BaseModel):
    input: str


class Echo(BaseModel):
    model: str
    messages: list[dict[str, str]]


@pytest.fixture
def client(echo_url: str) -> Iterator[AdaptedOpenAI]:
    sdk = openai.OpenAI(base_url=f"{echo_url}/v1", api_key="none", max_retries=0)
    with adapt(sdk, default_words=400) as adapted:
        yield adapted


@pytest.fixture
def asynchronous(echo_url: str) -> AdaptedAsyncOpenAI:
    sdk = openai.AsyncOpenAI(base_url=f"{echo_url}/v1", api_key="none", max_retries=0)
    return adapt(sdk, default_words=400)


def asked(text: str | None) -> str:
    """Return the prompt that the server got."""
    assert text is not None
    body = json.loads(text)
    texts = body.get("messages") or body.get("prompt") or body.get("input")
    return texts if isinstance(texts, str) else texts[-1]["content"]


def in_words(words: int) -> str:
    return f"Summarize in at most {words} words."


def chat(client: AdaptedOpenAI, **options: Any) -> str:
    answer = client.chat.completions.create(model="echo", messages=MESSAGES, **options)
    return asked(answer.choices[0].message.content)


def test_each_answer_brings_the_level_of_the_next_request(client: AdaptedOpenAI) -> None:
    assert chat(client, extra_headers=HALF) == in_words(400)
    assert client.word_budget.level == 0.5
    assert chat(client, extra_headers={"x-give": '["1.0000"]'}) == in_words(200)
    for odd in ("[]", '["0.1", "0.2"]', '["0,5"]'):
        assert chat(client, extra_headers={"x-give": odd}) == in_words(100)
    assert client.word_budget.counts == {
        "received": 2,
        "absent": 1,
        "malformed": 2,
        "failures": 0,
    }
    assert MESSAGES[0]["content"] == "Summarize in at most {words} words."


def test_a_stream_brings_it_before_its_first_chunk(client: AdaptedOpenAI) -> None:
    with client.chat.completions.create(
        model="echo", messages=MESSAGES, stream=True, extra_headers=HALF
    ) as stream:
        assert client.word_budget.level == 0.5
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert asked(text) == in_words(400)
    assert chat(client) == in_words(200)


def test_the_sdks_other_ways_to_generate(client: AdaptedOpenAI) -> None:
    client.word_budget.receive(["0.5"])
    completions = client.chat.completions
    request: Any = {"model": "echo", "messages": MESSAGES}

    raw = completions.with_raw_response.create(**request)
    assert asked(raw.parse().choices[0].message.content) == in_words(200)
    with completions.with_streaming_response.create(**request) as response:
        assert response.status_code == 200
        assert asked(response.parse().choices[0].message.content) == in_words(200)
    parsed = completions.parse(**request, response_format=Echo).choices[0].message.parsed
    assert parsed is not None
    assert parsed.messages[0]["content"] == in_words(200)
    with completions.stream(**request) as helper:
        assert asked(helper.get_final_completion().choices[0].message.content) == in_words(200)
    old = client.completions.create(model="echo", prompt=MESSAGES[0]["content"])
    assert asked(old.choices[0].text) == in_words(200)
    assert client.word_budget.counts["absent"] == 5


def test_responses(client: AdaptedOpenAI) -> None:
    client.word_budget.receive(["0.5"])
    request: Any = {"model": "echo", "input": MESSAGES, "extra_headers": HALF}
    assert asked(client.responses.create(**request).output_text) == in_words(200)
    *_, last = client.responses.create(**request, stream=True)
    assert last.type == "response.completed"
    assert asked(last.response.output_text) == in_words(200)
    with client.responses.stream(**request) as helper:
        assert asked(helper.get_final_response().output_text) == in_words(200)
    request["input"] = "Summarize in at most {words} words."
    parsed = client.responses.parse(**request, text_format=Question).output_parsed
    assert parsed is not None
    assert parsed.input == in_words(200)
    assert client.word_budget.counts["received"] == 5


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_is_the_sdks_own_and_brings_the_level(client: AdaptedOpenAI, stream: bool) -> None:
    with pytest.raises(openai.RateLimitError, match="as asked"):
        chat(client, stream=stream, extra_headers={**HALF, "x-status": "429"})
    assert client.word_budget.level == 0.5
    with (
        pytest.raises(openai.InternalServerError),
        client.chat.completions.with_streaming_response.create(
            model="echo",
            messages=MESSAGES,
            extra_headers={"x-give": '["0.25"]', "x-status": "500"},
        ),
    ):
        pass
    assert client.word_budget.level == 0.25


def test_of_a_call_that_is_tried_again_the_last_level_counts(client: AdaptedOpenAI) -> None:
    patient = client.with_options(max_retries=1)
    with pytest.raises(openai.InternalServerError):
        chat(patient, extra_headers={**HALF, "x-status": "503"})
    assert client.word_budget.counts["received"] == 1


def test_a_server_that_is_gone_is_the_sdks_own_error() -> None:
    client = adapt(openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0))
    with pytest.raises(openai.APIConnectionError):
        chat(client)
    assert set(client.word_budget.counts.values()) == {0}


async def test_the_asynchronous_client(asynchronous: AdaptedAsyncOpenAI) -> None:
    async with asynchronous as client:
        completions = client.chat.completions
        request: Any = {"model": "echo", "messages": MESSAGES, "extra_headers": HALF}
        stream = await completions.create(**request, stream=True)
        assert client.word_budget.level == 0.5
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        assert asked(text) == in_words(400)

        answer = await completions.create(**request)
        assert asked(answer.choices[0].message.content) == in_words(200)
        raw = await completions.with_raw_response.create(**request)
        assert asked(raw.parse().choices[0].message.content) == in_words(200)
        async with completions.with_streaming_response.create(**request) as response:
            whole = await response.parse()
            assert asked(whole.choices[0].message.content) == in_words(200)
        async with completions.stream(**request) as helper:
            final = await helper.get_final_completion()
            assert asked(final.choices[0].message.content) == in_words(200)
        assert client.word_budget.counts["received"] == 5

        with pytest.raises(openai.RateLimitError):
            await completions.create(
                **{**request, "extra_headers": {"x-give": '["1"]', "x-status": "429"}}
            )
        assert client.word_budget.level == 1.0


async def test_a_cancelled_request_leaves_the_budget_as_it_was(
    asynchronous: AdaptedAsyncOpenAI,
) -> None:
    async with asynchronous as client:
        request = client.chat.completions.create(
            model="echo", messages=MESSAGES, extra_headers=HALF
        )
        task = asyncio.ensure_future(request)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert client.word_budget.level is None


def test_the_rest_of_the_client_is_its_own(client: AdaptedOpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["echo"]
    assert client.max_retries == 0
    assert not hasattr(client.completions, "parse")
    with pytest.raises(AttributeError):
        client.nothing_like_this  # noqa: B018
    assert copy.copy(client).word_budget is client.word_budget


def test_a_copy_with_other_options_shares_the_budget(client: AdaptedOpenAI) -> None:
    quick = client.with_options(timeout=30.0)
    assert chat(quick, extra_headers=HALF) == in_words(400)
    assert quick.timeout == 30.0
    assert chat(client) == in_words(200)


def test_the_placeholder_and_the_token_limit_are_optional(echo_url: str) -> None:
    sdk = openai.OpenAI(base_url=f"{echo_url}/v1", api_key="none")
    client = adapt(sdk, placeholder=None, fill_max_tokens=True, words_per_token=0.75)
    client.word_budget.receive(["0.5"])
    for call, limit in [
        (client.chat.completions.create(model="echo", messages=MESSAGES), "max_tokens"),
        (client.completions.create(model="echo", prompt="{words}"), "max_tokens"),
        (client.responses.create(model="echo", input="{words}"), "max_output_tokens"),
    ]:
        body = json.loads(_text(call))
        assert "{words}" in json.dumps(body)
        assert body[limit] == 416  # twice 150 words in tokens, and 16
    own = client.chat.completions.create(model="echo", messages=MESSAGES, max_tokens=5)
    assert json.loads(_text(own))["max_tokens"] == 5


def _text(answer: Any) -> str:
    if hasattr(answer, "output_text"):
        return answer.output_text
    choice = answer.choices[0]
    return choice.message.content if hasattr(choice, "message") else choice.text


def test_a_response_without_readable_headers_costs_no_answer(client: AdaptedOpenAI) -> None:
    client._terms.receive(object())
    assert client.word_budget.counts["absent"] == 1


def test_without_the_package_one_line_says_what_is_missing() -> None:
    code = "import sys; sys.modules['openai'] = None; import bellman.client"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    last_line = ended.stderr.decode().splitlines()[-1]
    assert last_line.endswith("bellman.client needs the package openai: install the extra `client`")
