"""Asking for the number of words that yields the wanted length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.app.length_compliance import asked_words, calibrated_words
from bellman.errors import ConfigError

CURVE = {20: 39.0, 40: 63.0, 80: 135.0, 160: 219.0, 300: 335.0}


def test_known_answers():
    assert [calibrated_words(wanted, CURVE) for wanted in (300, 212, 150, 75, 38, 5)] == [
        300,
        160,
        80,
        40,
        20,
        20,
    ]


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_more_words_are_never_asked_for_less(low, high):
    low, high = sorted((low, high))
    assert calibrated_words(low, CURVE) <= calibrated_words(high, CURVE)


def test_without_calibration_the_budget_is_asked_for():
    assert asked_words(75, calibrated=False, length_compliance=CURVE) == 75


def test_calibration_needs_a_curve():
    with pytest.raises(ConfigError, match=r"adaptation\.calibrated=True: needs a recorded"):
        asked_words(75, calibrated=True, length_compliance=None)
