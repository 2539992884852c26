"""What the chunks of a stream add up to, with the clock in the test's hand."""

import json
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.frames import derive
from bellman.engines.base import Completion, RequestFailed
from bellman.engines.openai.answer import MOST_PIECES, StreamedAnswer

STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def delta(**values: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": values, "finish_reason": None}]}


def usage(completion_tokens: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [], "usage": {"completion_tokens": completion_tokens, **more}}


def answer(*events: tuple[float, Any]) -> StreamedAnswer:
    """Take events (time, JSON value or raw bytes), a finish reason and [DONE]."""
    collected = StreamedAnswer()
    for time_s, event in (*events, (100.0, STOP), (100.0, b"[DONE]")):
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        collected.take(data, time_s)
    return collected


def completed(*events: tuple[float, Any]) -> Completion:
    return answer(*events).completion(None)


def fails(*events: tuple[float, Any]) -> str:
    with pytest.raises(RequestFailed) as failure:
        completed(*events)
    assert failure.value.status == "error"
    return failure.value.reason


def contents(*texts: str) -> list[tuple[float, Any]]:
    return [(float(second), delta(content=text)) for second, text in enumerate(texts, start=1)]


def test_gaps_are_between_two_pieces() -> None:
    # The role's empty chunk and the end are no content.
    times = [(0.0, ""), (5.0, "a"), (5.25, " b"), (6.75, " c"), (7.0, " d")]
    whole = completed(*((time_s, delta(role="assistant", content=text)) for time_s, text in times))
    assert (whole.first_token_s, whole.last_token_s) == (5.0, 7.0)
    assert whole.first_content_token_s == 5.0
    assert whole.chunk_gaps_s == [0.25, 1.5, 0.25]


def test_one_chunk_has_no_gap() -> None:
    assert completed(*contents("all of it")).chunk_gaps_s == []


OTHER_NAMES = ["reasoning_content", "reasoning", "thinking", "reasoning_text"]


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_reasoning_is_timed_and_is_no_text(name: str) -> None:
    """40 chunks of reasoning from 0.1 s on, then 10 of content, one every 25 ms."""
    events = [
        (0.1 + 0.025 * n, delta(**{name if n < 40 else "content": f" w{n}"})) for n in range(50)
    ]
    details = {"reasoning_tokens": 40}
    end = (2.0, usage(50, prompt_tokens=7, completion_tokens_details=details))
    whole = completed(*events, end)
    record = {
        "status": ["ok"],
        "intended_s": [0.0],
        "sent_s": [0.0],
        "first_token_s": [whole.first_token_s],
        "first_content_token_s": [whole.first_content_token_s],
        "last_token_s": [whole.last_token_s],
        "output_tokens": [whole.output_tokens],
        "chunk_gaps_s": [whole.chunk_gaps_s],
    }
    (seen,) = derive(pd.DataFrame(record)).to_dict("records")
    assert seen["ttft_s"] == pytest.approx(0.1)
    assert seen["tpot_s"] == pytest.approx(0.025)
    assert seen["ttfc_s"] == pytest.approx(1.1)
    assert seen["e2e_s"] == pytest.approx(0.1 + 49 * 0.025)
    assert whole.reasoning_tokens == 40
    assert whole.text == "".join(f" w{n}" for n in range(40, 50))
    assert whole.chunk_gaps_s == [0.025] * 49


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a plan</think>\n\nThe answer.", "The answer."),
        ("\n<think>\na plan\n</think>\nThe answer. ", "The answer. "),
        ("a plan</think>The answer.", "The answer."),
        ("<think>a</think>One <think>b</think>two.", "One two."),
        ("<think>a<think>b</think>The answer.", "The answer."),
        ("The answer.<think>more", "The answer."),
        ("<Thinking>a</THINKING>The answer.", "The answer."),
        ("[THINK]a[/THINK]The answer.", "The answer."),
        ("<thought>a</thought>The answer.", "The answer."),
        ("<seed:think>a</seed:think>The answer.", "The answer."),
        ("<REASONING>a</reasoning>The answer.", "The answer."),
        ("◁think▷a◁/think▷The answer.", "The answer."),
        ("<think></think>\n\nThe answer.", "The answer."),
        (" The answer, with a thinker < think >.", " The answer, with a thinker < think >."),
    ],
)
def test_thinking_in_the_text_is_no_summary_however_it_is_cut(text: str, expected: str) -> None:
    for size in (1, 2, 3, 7, len(text)):
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        whole = completed(*contents(*pieces))
        assert whole.text == expected
        assert whole.first_token_s == 1.0  # thinking is timed
        first = text.index(expected[:3]) // size + 1
        assert whole.first_content_token_s == first
        assert whole.last_token_s == len(pieces)


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "word ", "</thi", "nk>", "\n"]), max_size=12)
)
def test_no_mixture_of_tags_is_an_exception(pieces: list[str]) -> None:
    try:
        whole = completed(*contents(*pieces))
    except RequestFailed:
        return
    assert whole.text is not None and whole.text.strip()
    assert whole.first_content_token_s is not None
    assert whole.first_token_s <= whole.first_content_token_s <= whole.last_token_s


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (
            contents("<think>a plan that a limit cut"),
            "no text: reasoning alone (finish_reason stop)",
        ),
        (contents("<think>a</think> \n"), "no text: reasoning alone"),
        (contents(" ", "\n"), "the answer has no text"),
        ([(1.0, delta(reasoning="a plan"))], "no text: reasoning alone"),
        ([(1.0, delta(tool_calls=[{"function": {"name": "f"}}]))], "no text: tool calls alone"),
        ([(1.0, delta(refusal="I can")), (2.0, delta(refusal="not."))], "refused: I cannot."),
        ([(1.0, delta(content="x", refusal="no\x1b[31m"))], "refused: no�[31m"),
        (
            [(1.0, {"choices": [{"index": n, "delta": {"content": "x"}} for n in (0, 1)]})],
            "several answers where one was asked for",
        ),
        (
            [(1.0, {"choices": [{"delta": {"content": "x"}}] * 2})],
            "several answers where one was asked for",
        ),
    ],
)
def test_what_is_no_answer(events: list[tuple[float, Any]], reason: str) -> None:
    assert reason in fails(*events)


def test_what_follows_the_answer_is_timed_as_it_is_counted() -> None:
    """Fifty tokens, one every 25 ms: the last ten are a call of a tool."""
    call = {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}
    events = [
        (0.1 + 0.025 * n, delta(**({"content": f" w{n}"} if n < 40 else call))) for n in range(50)
    ]
    whole = completed(*events, (2.0, usage(50)))
    assert whole.last_token_s - whole.first_token_s == pytest.approx(49 * 0.025)
    assert whole.text == "".join(f" w{n}" for n in range(40))


@pytest.mark.parametrize(
    "reasoning",
    [
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]},
        {"thinking_blocks": [{"thinking": "x"}]},
        {"content": [{"type": "reasoning", "summary": []}]},
    ],
)
def test_reasoning_of_other_shapes_is_timed(reasoning: dict[str, Any]) -> None:
    whole = completed((1.0, delta(**reasoning)), (2.0, delta(content="a")))
    assert (whole.first_token_s, whole.first_content_token_s, whole.text) == (1.0, 2.0, "a")


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((10, 30, 30, 40), 30),  # completion tokens are 10 + 20 of reasoning: the usual way
        ((10, 5, 20, 35), 25),  # they leave out the reasoning, the total does not
        ((10, 5, 20, None), None),
        ((10, 5, 20, 15), None),
        ((10, 30, None, 340), None),  # something was written that nobody names
        ((10, 30, None, 0), 30),
        ((None, 30, 5, 50), 30),
    ],
)
def test_counts_of_reasoning(counts: tuple[int | None, ...], expected: int | None) -> None:
    prompt, tokens, reasoning, total = counts
    details = None if reasoning is None else {"reasoning_tokens": reasoning}
    end = usage(tokens, prompt_tokens=prompt, total_tokens=total, completion_tokens_details=details)
    assert completed(*contents("a"), (2.0, end)).output_tokens == expected


@pytest.mark.parametrize(
    "reason", ["abort", "Timeout", "cancelled", "insufficient_system_resource", "sensitive"]
)
def test_an_answer_that_the_server_gave_up_is_none(reason: str) -> None:
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    collected = StreamedAnswer()
    for event in (contents("a")[0][1], end):
        collected.take(json.dumps(event).encode(), 1.0)
    collected.take(b"[DONE]", 1.0)
    with pytest.raises(RequestFailed, match=f"gave up: finish_reason {reason}"):
        collected.completion(None)


def test_an_empty_finish_reason_is_none() -> None:
    collected = StreamedAnswer()
    unfinished = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": ""}]}
    collected.take(json.dumps(unfinished).encode(), 1.0)
    collected.take(b"[DONE]", 1.0)
    with pytest.raises(RequestFailed, match="before a finish_reason"):
        collected.completion(None)


def test_other_shapes_of_text() -> None:
    legacy = {"choices": [{"index": 0, "text": "old"}]}
    assert completed((1.0, legacy)).text == "old"
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "new"},
        None,
        {"type": 3},
    ]
    assert completed((1.0, delta(content=parts))).text == "new"
    assert completed((1.0, delta(content="a", tool_calls=[{"index": 0}]))).text == "a"
    assert completed((1.0, {"choices": [None, 3, {"index": True, "delta": {"content": "b"}}]})).text


@pytest.mark.parametrize(
    "count", [True, False, -1, 0, 1.0, 2.5, 3_000_000_000, "7", [], {}, 10**30]
)
def test_a_count_that_is_none_is_not_recorded(count: Any) -> None:
    odd = usage(count, prompt_tokens=count, completion_tokens_details={"reasoning_tokens": count})
    whole = completed(*contents("a"), (2.0, usage(5, prompt_tokens=3)), (3.0, odd))
    assert (whole.output_tokens, whole.prompt_tokens) == (None, None)
    assert whole.reasoning_tokens in (None, 0)


def test_the_last_usage_counts_and_an_outdated_one_does_not() -> None:
    one, two = contents("a", " b")
    assert completed(one, two, (3.0, usage(2))).output_tokens == 2
    both = {**delta(content=" c"), "usage": {"completion_tokens": 3}}
    assert completed(one, (1.5, usage(1)), two, (3.0, both)).output_tokens == 3
    assert completed(one, two, (3.0, usage(2)), (4.0, {"usage": None})).output_tokens == 2
    assert completed(one, (1.5, usage(1)), two).output_tokens is None


def test_nothing_counts_after_done() -> None:
    whole = StreamedAnswer()
    for event in (*(json.dumps(event).encode() for _, event in contents("a")), b"[DONE]"):
        whole.take(event, 1.0)
    with pytest.raises(RequestFailed, match="before a finish_reason"):
        whole.completion(None)
    for event in (json.dumps(STOP).encode(), b"[DONE]", b"no JSON", b'{"error": "late"}'):
        whole.take(event, 2.0)
    with pytest.raises(RequestFailed, match="before a finish_reason"):
        whole.completion(None)


def test_halves_of_characters() -> None:
    pair = json.dumps("\N{PARTY POPPER}")[1:-1]
    pieces = [
        b'{"choices": [{"delta": {"content": "%s"}}]}' % half.encode()
        for half in (pair[:6], pair[6:])
    ]
    assert completed((1.0, pieces[0]), (2.0, pieces[1])).text == "\N{PARTY POPPER}"
    assert completed((1.0, pieces[1]), (2.0, pieces[0])).text == "��"


@pytest.mark.parametrize(
    "event",
    [
        b"[" * 5000 + b"]" * 5000,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b'{"usage": {"completion_tokens": ' + b"9" * 5000 + b"}}",
        b"NaN",
        b"null",
        b"\xff\xfe",
        b"",
    ],
)
def test_data_that_is_no_json_object(event: bytes) -> None:
    assert "no JSON object in the stream" in fails((1.0, event))


def test_numbers_that_are_none_do_no_harm() -> None:
    odd = b'{"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": NaN}], "x": Infinity}'
    assert completed((1.0, odd)).text == "a"


@pytest.mark.slow
def test_more_pieces_than_any_model_writes() -> None:
    event = json.dumps(delta(content="a")).encode()
    collected = StreamedAnswer()
    with pytest.raises(RequestFailed, match=f"more than {MOST_PIECES} pieces"):
        for _ in range(MOST_PIECES + 2):
            collected.take(event, 1.0)


def test_a_finish_reason_is_short_and_printable() -> None:
    collected = answer(*contents("a"))
    collected.done = False
    end = {"choices": [{"delta": {}, "finish_reason": "\x1b[2J\ud800" + "x" * 1000}]}
    collected.take(json.dumps(end).encode(), 2.0)
    collected.done = True
    reason = collected.completion(None).finish_reason
    assert reason is not None and reason.startswith("�[2J�x") and len(reason) < 50
