"""Limits on what is outstanding, and on tokens per minute, on sequences written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.admission.accept_all import AcceptAll
from bellman.admission.base import Refusal
from bellman.admission.queue_limit import QueueLimit
from bellman.admission.tokens_per_minute import TokensPerMinute
from bellman.errors import ConfigError
from tests.admission.entrance import Entrance


def test_everything_enters_where_there_is_no_admission() -> None:
    assert Entrance(AcceptAll(), outstanding=10**6).enters(100) == 100


def test_the_limit_on_requests_is_the_engines_own_count() -> None:
    entrance = Entrance(QueueLimit(5), outstanding=2)
    assert entrance.enters(10) == 3
    assert entrance.ask() == Refusal(503, "queue limit: 5 outstanding, limit 5")
    entrance.end(2)
    assert entrance.enters(10) == 2


def test_the_limit_on_tokens_counts_what_the_admitted_may_need() -> None:
    entrance = Entrance(QueueLimit(tokens=1000))
    assert entrance.enters(10, prompt_tokens=200, max_tokens=100) == 3
    refusal = entrance.ask(prompt_tokens=100, max_tokens=1)
    assert refusal == Refusal(503, "queue limit: 900 + 101 tokens, limit 1000")
    assert entrance.enters(prompt_tokens=99, max_tokens=1) == 1
    entrance.end(1)
    assert entrance.enters(prompt_tokens=300) == 1


def test_a_request_above_the_limit_on_tokens_is_served_alone() -> None:
    entrance = Entrance(QueueLimit(tokens=10))
    assert entrance.enters(2, prompt_tokens=50) == 1


def test_a_queue_limit_needs_a_limit() -> None:
    with pytest.raises(ConfigError, match="limit"):
        QueueLimit()


def test_tokens_of_the_last_minute_and_when_to_come_again() -> None:
    entrance = Entrance(TokensPerMinute(1000))
    assert entrance.enters(2, prompt_tokens=300, max_tokens=100) == 2  # 800 at 0 s
    entrance.now_s = 20.5
    assert entrance.enters(prompt_tokens=150) == 1  # 950
    entrance.now_s = 30.0
    # 100 fit when one of the first two, of 400 each, is a minute old: in 30 s.
    refusal = entrance.ask(prompt_tokens=40, max_tokens=60)
    assert refusal == Refusal(429, "950 + 100 tokens in a minute, limit 1000", 30)
    # 900 fit when the last, of 150 tokens at 20.5 s, is: in 50.5 s, in whole seconds 51.
    refusal = entrance.ask(prompt_tokens=900)
    assert refusal == Refusal(429, "950 + 900 tokens in a minute, limit 1000", 51)
    entrance.now_s = 59.999
    assert entrance.ask(prompt_tokens=100) is not None
    entrance.now_s = 60.0
    assert entrance.enters(prompt_tokens=850) == 1
    assert entrance.ask(prompt_tokens=1) is not None


def test_more_than_the_limit_never_fits() -> None:
    refusal = Entrance(TokensPerMinute(1000)).ask(prompt_tokens=1001)
    assert refusal == Refusal(429, "0 + 1001 tokens in a minute, limit 1000", None)


@given(
    st.lists(st.tuples(st.integers(0, 1280), st.integers(1, 500)), max_size=60),
    st.integers(1, 1500),
)
def test_no_minute_has_more_tokens_than_the_limit(
    arrivals: list[tuple[int, int]], limit: int
) -> None:
    entrance = Entrance(TokensPerMinute(limit))
    admitted: list[tuple[float, int]] = []
    for gap, tokens in arrivals:
        entrance.now_s += gap / 64  # exact in binary, so that no edge is missed by rounding
        refusal = entrance.ask(prompt_tokens=tokens)
        if refusal is None:
            admitted.append((entrance.now_s, tokens))
        elif tokens > limit:
            assert refusal.retry_after_s is None
        else:
            # What is told is true: then it would fit, and a second earlier it would not.
            assert refusal.retry_after_s is not None
            for wait_s, fits in ((refusal.retry_after_s, True), (refusal.retry_after_s - 1, False)):
                then_s = entrance.now_s + wait_s
                left = sum(size for time_s, size in admitted if time_s + 60 > then_s)
                assert (left + tokens <= limit) == fits
    for end_s, _ in admitted:
        inside = [tokens for time_s, tokens in admitted if end_s - 60 < time_s <= end_s]
        assert sum(inside) <= limit
