"""The words in a request's texts, and its token limit."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellman.client.fill import with_token_limit, with_words

TEXTS = st.recursive(
    st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


@pytest.mark.parametrize(
    ("request_texts", "filled"),
    [
        (
            {"messages": [{"role": "user", "content": "At most {words} words: {x} {words}."}]},
            {"messages": [{"role": "user", "content": "At most 75 words: {x} 75."}]},
        ),
        (
            {"messages": ({"content": [{"type": "text", "text": "{words}"}, {"n": 1}]},)},
            {"messages": [{"content": [{"type": "text", "text": "75"}, {"n": 1}]}]},
        ),
        ({"prompt": ["{words}", "none"]}, {"prompt": ["75", "none"]}),
        ({"input": "{words}", "instructions": "{words}"}, {"input": "75", "instructions": "75"}),
        ({"user": "{words}", "model": "{words}"}, {"user": "{words}", "model": "{words}"}),
    ],
)
def test_words_stand_where_the_placeholder_was(
    request_texts: dict[str, Any], filled: dict[str, Any]
) -> None:
    before = copy.deepcopy(request_texts)
    assert with_words(request_texts, 75, "{words}") == filled
    assert request_texts == before


@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from(["messages", "prompt", "model"]), TEXTS))
def test_what_has_no_placeholder_goes_as_it_is(request_texts: dict[str, Any]) -> None:
    assert with_words(request_texts, 75, "{words}") == request_texts


@pytest.mark.parametrize("own", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_a_token_limit_of_the_applications_own_stays(own: str) -> None:
    assert with_token_limit({own: 5}, "max_tokens", 100) == {own: 5}
    assert with_token_limit({"n": 1}, "max_tokens", 100) == {"n": 1, "max_tokens": 100}
