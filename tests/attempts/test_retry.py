"""When a client asks again: exponential back-off with full jitter, and Retry-After."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.attempts.give_up import GiveUp
from bellman.attempts.retry import Retry
from bellman.engines.base import RequestFailed
from bellman.errors import ConfigError

REFUSED = RequestFailed("rejected", "full", http_status=429)
RULE = Retry(attempts=6, first_wait_s=1.0, longest_wait_s=6.0, seed=1)


def waits_s(rule: Retry, request_id: int, *failures: RequestFailed) -> list[float | None]:
    patience = rule.start(0, request_id)
    return [patience.wait_s(failure) for failure in failures]


def test_the_bound_doubles_up_to_the_longest_and_the_waits_fill_it() -> None:
    """Of 4,000 uniform draws on [0, b] the largest is above 0.99 b, the mean near b / 2."""
    drawn = [waits_s(RULE, number, *[REFUSED] * 5) for number in range(4000)]
    for refusals, bound_s in enumerate([1.0, 2.0, 4.0, 6.0, 6.0]):
        column = [waits[refusals] or 0.0 for waits in drawn]
        assert 0.0 <= min(column) < 0.01 * bound_s
        assert 0.99 * bound_s < max(column) <= bound_s
        assert sum(column) / len(column) == pytest.approx(bound_s / 2, rel=0.03)


def test_it_gives_up_after_the_last_attempt() -> None:
    waits = waits_s(RULE, 1, *[REFUSED] * 6)
    assert None not in waits[:5] and waits[5] is None


@given(st.integers(0, 86400), st.integers(0, 1000))
def test_it_never_comes_before_the_server_said(retry_after_s: int, request_id: int) -> None:
    asked = RequestFailed("rejected", "full", http_status=503, retry_after_s=retry_after_s)
    (wait_s,) = waits_s(RULE, request_id, asked)
    (alone_s,) = waits_s(RULE, request_id, REFUSED)
    assert wait_s is not None and alone_s is not None
    assert retry_after_s <= wait_s <= retry_after_s + 1.0
    assert wait_s == retry_after_s + alone_s


@pytest.mark.parametrize("status", ["error", "timeout"])
def test_only_refusals_are_sent_again(status) -> None:
    assert waits_s(RULE, 1, RequestFailed(status, "broken")) == [None]


def test_draws_are_those_of_the_request_and_the_repeat() -> None:
    assert waits_s(RULE, 7, REFUSED, REFUSED) == waits_s(RULE, 7, REFUSED, REFUSED)
    assert waits_s(RULE, 7, REFUSED) != waits_s(RULE, 8, REFUSED)
    assert RULE.start(0, 7).wait_s(REFUSED) != RULE.start(1, 7).wait_s(REFUSED)


def test_giving_up_is_one_attempt() -> None:
    client = GiveUp()
    assert (client.attempts, client.start(0, 1).wait_s(REFUSED)) == (1, None)


def test_a_retry_is_at_least_two_attempts() -> None:
    with pytest.raises(ConfigError, match="attempts"):
        Retry(attempts=1, first_wait_s=1.0, longest_wait_s=1.0, seed=1)
