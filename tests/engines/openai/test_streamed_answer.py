"""Times of a stream's chunks, with the clock in the test's hand."""

import json

from bellman.engines.openai.answer import StreamedAnswer


def chunk(content: str, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish_reason}
    return json.dumps({"choices": [choice]}).encode()


def answer(*chunks: tuple[float, str]) -> StreamedAnswer:
    collected = StreamedAnswer()
    for time_s, content in chunks:
        collected.take(chunk(content), time_s)
    collected.take(chunk("", "stop"), 100.0)
    collected.take(b"[DONE]", 100.0)
    return collected


def test_gaps_are_between_two_pieces_of_content() -> None:
    # The role's empty chunk and the end are no content.
    whole = answer((0.0, ""), (5.0, "a"), (5.25, " b"), (6.75, " c"), (7.0, " d"))
    completion = whole.completion(None)
    assert (completion.first_token_s, completion.last_token_s) == (5.0, 7.0)
    assert completion.chunk_gaps_s == [0.25, 1.5, 0.25]


def test_one_chunk_has_no_gap() -> None:
    completion = answer((5.0, "all of it")).completion(None)
    assert completion.chunk_gaps_s == []
