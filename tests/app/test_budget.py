"""Word budgets: the ladder, the floor, the token guard."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.app.budget import BudgetRules
from bellman.errors import ConfigError


def rules(**changes):
    values = {
        "default_words": 300,
        "ladder_ratio": math.sqrt(2),
        "words_per_token": 0.75,
        "guard_ratio": 2.0,
        "guard_margin_tokens": 16,
        "task": "summary",
        "floor_tokens": {"summary": 100, "answer": 50},
    }
    return BudgetRules(**(values | changes))


def test_the_ladder_ends_at_the_floor():
    assert rules().ladder_words == (300, 212, 150, 106, 75)
    assert rules(task="answer").ladder_words == (300, 212, 150, 106, 75, 53, 38)


def test_known_budgets():
    scales = (1.0, 0.9, 0.8, 0.5, 0.25, 0.01)
    assert [rules().budget_words(scale) for scale in scales] == [300, 300, 212, 150, 75, 75]


@given(
    st.floats(1e-6, 1),
    st.floats(1e-6, 1),
    st.integers(75, 2000),
    st.floats(1.02, 4),
)
def test_budgets_fall_with_the_scale_and_stay_on_the_ladder(low, high, default_words, ratio):
    low, high = sorted((low, high))
    made = rules(default_words=default_words, ladder_ratio=ratio)
    assert made.floor_words <= made.budget_words(low) <= made.budget_words(high) <= default_words
    assert made.budget_words(high) in made.ladder_words
    assert made.budget_words(1.0) == default_words
    assert made.max_tokens(made.budget_words(low)) > made.budget_words(low)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"default_words": 74}, "^default_words=74: must be at least the floor"),
        ({"task": "poem"}, "^task=poem: must be one of summary, answer"),
        ({"ladder_ratio": 1.0}, "^ladder_ratio=1.0"),
        ({"guard_ratio": 0.5}, "^guard_ratio=0.5"),
        ({"floor_tokens": {"summary": 0}}, "^floor_tokens"),
    ],
)
def test_wrong_rules_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        rules(**changes)
