"""The tokens of a request, read off its body in any of the servers' interfaces."""

import json

import pytest

from bellman.admission.base import Arrival
from bellman.serving.arrival import arrival_of


@pytest.mark.parametrize(
    ("body", "arrival"),
    [
        ({"messages": [{"role": "user", "content": "x" * 40}], "max_tokens": 7}, (10, 7)),
        ({"messages": [{"content": "x" * 41}], "max_completion_tokens": 9}, (11, 9)),
        ({"messages": [{"content": [{"type": "text", "text": "x" * 8}]}]}, (2, None)),
        ({"prompt": ["x" * 4, "y" * 4], "max_tokens": 3}, (2, 3)),
        ({"input": "x" * 12, "max_output_tokens": 5}, (3, 5)),
        ({"inputs": "x" * 16, "parameters": {"max_new_tokens": 6}}, (4, 6)),
        ({"prompt": "", "max_tokens": True}, (0, None)),
        ({"prompt": 3, "max_tokens": -1}, (0, None)),
        ({"prompt": "xxxx", "max_tokens": 1e3}, (1, None)),
        ([1], (None, None)),
    ],
)
def test_what_a_body_asks_for(body, arrival) -> None:
    assert arrival_of(json.dumps(body).encode()) == Arrival(*arrival)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_unknown(body) -> None:
    assert arrival_of(body) == Arrival(None, None)
    assert arrival_of(body).tokens == 0
