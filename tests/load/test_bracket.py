"""The bisection finds the threshold of a test whose threshold is known."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.load.bracket import highest_passing


def bracket(passes, rates, resolution, limit):
    """Answer what the search asks for, until it ends."""
    search = highest_passing(rates, resolution, limit)
    asked = next(search)
    while True:
        try:
            asked = search.send([passes(rate) for rate in asked])
        except StopIteration as end:
            return end.value


@given(st.floats(0.05, 40.0))
def test_the_bracket_holds_the_threshold(threshold):
    low, high = bracket(lambda rate: rate <= threshold, [5.0, 8.0, 10.0, 13.0], 0.05, 100.0)
    assert low <= threshold < high
    assert high - low <= 0.05 or low == 0.0


def test_all_given_rates_are_tried_because_they_are_the_curve():
    tried = []
    bracket(lambda rate: not tried.append(rate) and rate < 6, [8.0, 5.0, 10.0], 0.5, 50.0)
    assert tried[:3] == [5.0, 8.0, 10.0]


def test_a_test_that_always_passes_ends_at_the_limit():
    low, high = bracket(lambda rate: True, [5.0, 10.0], 0.1, 20.0)
    assert 20.0 / 1.25 < low <= 20.0
    assert math.isinf(high)


def test_a_test_that_never_passes_ends_at_zero():
    low, high = bracket(lambda rate: False, [5.0, 10.0], 0.1, 20.0)
    assert low == 0.0
    assert high <= 0.1


def test_a_pass_above_a_failure_does_not_count():
    low, high = bracket(lambda rate: rate < 6 or rate > 9, [5.0, 8.0, 10.0], 0.01, 20.0)
    assert low == pytest.approx(6.0, abs=0.01)
    assert high == pytest.approx(6.0, abs=0.01)
