"""Which replica is asked, and whose level counts."""

import pytest

from bellman.engines.base import RequestFailed
from bellman.engines.routed.round_robin import RoundRobin
from bellman.engines.routed.session import may_pass_elsewhere, said_of_all, total
from bellman.engines.routed.spillover import Spillover
from bellman.sensing.observation import Observation


@pytest.mark.parametrize(
    ("level", "levels", "order"),
    [
        (None, [1.0, 0.0], [0, 1]),
        (0.5, [0.4, 0.9], [0, 1]),
        (0.5, [0.5, 0.9, None], [1, 2, 0]),
        (0.5, [None, 0.9], [0, 1]),
    ],
)
def test_spillover_asks_the_first_unless_its_level_is_high(level, levels, order) -> None:
    assert list(Spillover(level).order(7, levels)) == order
    assert [Spillover(level).heeds(place) for place in range(2)] == [True, False]


def test_round_robin_asks_each_in_turn() -> None:
    asked = [list(RoundRobin().order(number, [None] * 3)) for number in range(5)]
    assert asked == [[0], [1], [2], [0], [1]]
    assert RoundRobin().heeds(2)


@pytest.mark.parametrize(
    ("status", "http_status", "passes"),
    [
        ("rejected", 429, True),
        ("rejected", 503, True),
        ("error", 500, True),
        ("error", None, True),  # the connection failed
        ("error", 400, False),
        ("error", 404, False),
        ("timeout", None, False),
    ],
)
def test_what_goes_on_to_another_replica(status, http_status, passes) -> None:
    failure = RequestFailed(status, "", http_status=http_status)
    assert may_pass_elsewhere(failure) is passes


def test_the_load_of_all_is_the_sum_and_unknown_where_one_is() -> None:
    one = Observation(1.0, 2, 3, kv_usage=0.5, generated_tokens_total=7)
    other = Observation(1.0, 10, 20, kv_usage=0.1, generated_tokens_total=None)
    both = total([one, other])
    assert both is not None
    assert (both.waiting, both.running, both.kv_usage) == (12, 23, 0.3)
    assert both.generated_tokens_total is None
    assert total([one, None]) is None


def test_what_all_engines_say_alike_is_said_once():
    assert said_of_all({"first": "disabled", "spare": "disabled"}) == "disabled"
    assert said_of_all({"first": "disabled", "spare": "reset"}) == "first: disabled; spare: reset"
