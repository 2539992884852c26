"""The application's answers to the signal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.adaptation.base import form_of
from bellman.adaptation.cap import Cap
from bellman.adaptation.concise import Concise
from bellman.adaptation.knee import Knee
from bellman.adaptation.linear import Linear
from bellman.adaptation.static import Static
from bellman.adaptation.steps import Steps
from bellman.errors import ConfigError

KNEE = Knee(knee_level=0.3, full_level=0.8, alpha_min=0.25)
ADAPTATIONS = [
    Linear(alpha_min=0.25),
    Linear(alpha_min=1.0),
    Cap(alpha_min=0.25),
    KNEE,
    Steps(levels=[0.0, 0.33, 0.67], scales=[1.0, 0.5, 0.25]),
]
LEVELS = st.floats(0, 1)


@pytest.mark.parametrize("adaptation", ADAPTATIONS, ids=str)
@given(low=LEVELS, high=LEVELS)
def test_the_scale_never_rises_with_the_level_and_keeps_its_range(adaptation, low, high):
    low, high = sorted((low, high))
    floor = adaptation.scales[-1] if isinstance(adaptation, Steps) else adaptation.alpha_min
    assert floor <= adaptation.scale(high) <= adaptation.scale(low) <= 1
    assert adaptation.scale(0.0) == 1


@given(LEVELS)
def test_a_cap_is_linear_in_tokens_and_a_static_ask_and_being_concise_know_no_level(level):
    assert Cap(0.25).scale(level) == Linear(0.25).scale(level)
    assert Static(words=150, default_words=300).scale(level) == 0.5
    assert Concise().scale(level) == 1.0
    forms = [form_of(one) for one in (Linear(0.25), Cap(0.25), Static(150, 300), Concise())]
    assert forms == ["words", "tokens", "words", "concise"]


@given(LEVELS)
def test_the_knee_is_the_published_line(level):
    expected = 1.0 if level <= 0.3 else 0.25 if level >= 0.8 else 1 - 1.5 * (level - 0.3)
    assert KNEE.scale(level) == pytest.approx(expected, abs=1e-12)


def test_known_answers():
    linear = Linear(alpha_min=0.25)
    assert [linear.scale(level) for level in (0, 0.4, 0.75, 0.9)] == [1, 0.6, 0.25, 0.25]
    steps = Steps(levels=[0, 0.33, 0.67], scales=[1, 0.5, 0.25])
    assert [steps.scale(level) for level in (0.32, 0.33, 0.66, 0.67, 1)] == [
        1,
        0.5,
        0.5,
        0.25,
        0.25,
    ]


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: Linear(alpha_min=1.5), "^alpha_min=1.5"),
        (lambda: Linear(alpha_min=0), "^alpha_min=0"),
        (lambda: Knee(0.8, 0.3, 0.25), "^full_level=0.3"),
        (lambda: Steps([0.1, 0.5], [1, 0.5]), "^levels"),
        (lambda: Steps([0, 0.5], [0.5, 1]), "^scales"),
        (lambda: Steps([0, 0.5], [1.0]), "^scales"),
        (lambda: Cap(alpha_min=0), "^alpha_min=0"),
        (lambda: Static(301, 300), "^words=301: must be at most default_words=300"),
    ],
)
def test_wrong_ranges_are_refused_by_key_and_value(make, key):
    with pytest.raises(ConfigError, match=key):
        make()
