"""The event parser against the rules of the standard, however the bytes are cut."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bellman.engines.openai.sse import EventParser

STREAM = (
    b'\xef\xbb\xbfdata: {"a": 1}\n\n'
    b": a comment\r\n"
    b"event: message\r\ndata:no space\r\n\r\n"
    b"data: first\ndata: second\n\n"
    b"id: 7\n\n"
    b"data: caf\xc3\xa9 \xf0\x9f\x8e\x89\r\r"
    b"data\n\n"
    b"data: [DONE]"
)
EVENTS = [
    b'{"a": 1}',
    b"no space",
    b"first\nsecond",
    b"caf\xc3\xa9 \xf0\x9f\x8e\x89",
    b"",
    b"[DONE]",
]


def parse(pieces: list[bytes]) -> list[bytes]:
    parser = EventParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.finish()


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert parse([STREAM[a:b] for a, b in pairwise(edges)]) == EVENTS


def test_byte_by_byte() -> None:
    assert parse([bytes([byte]) for byte in STREAM]) == EVENTS


def test_an_event_is_out_when_its_blank_line_is() -> None:
    parser = EventParser()
    assert parser.feed(b"data: 1\r\n\r") == [b"1"]
    assert parser.feed(b"\ndata: 2\n") == []
    assert parser.feed(b"\n") == [b"2"]
    assert parser.finish() == []


def test_a_line_of_many_megabytes() -> None:
    line = bytes(random.Random(0).choices(b"abcdefgh", k=4_000_000))
    pieces = [b"data: ", *(line[i : i + 1000] for i in range(0, len(line), 1000)), b"\n\n"]
    assert parse(pieces) == [line]
