"""The control laws as pure functions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.adaptation.linear import Linear
from bellman.app.budget import BudgetRules
from bellman.controllers.base import Level
from bellman.controllers.bellman import QueueLaw
from bellman.controllers.none import NoControl
from bellman.controllers.threshold import Threshold
from bellman.errors import ConfigError
from bellman.sensing.observation import Observation

QUEUES = st.integers(0, 10_000)
RULES = BudgetRules(300, 2**0.5, 0.75, 2.0, 16, "summary", {"summary": 100})


def seen(outstanding: int, running: int = 0) -> Observation:
    return Observation(time_s=0.0, waiting=outstanding - running, running=running)


@given(QUEUES, QUEUES, st.floats(0, 200), st.floats(1, 1000), st.floats(0, 1))
def test_the_level_never_falls_and_the_budget_never_rises_with_the_queue(
    low, high, q_low, width, before
):
    low, high = sorted((low, high))
    law = QueueLaw(q_low=q_low, q_high=q_low + width, max_step=0.1)
    levels = [law.update(Level(before), seen(queue), 1.0).level for queue in (low, high)]
    assert 0 <= levels[0] <= levels[1] <= 1
    budgets = [RULES.budget_words(Linear(0.05).scale(level)) for level in levels]
    assert RULES.floor_words <= budgets[1] <= budgets[0] <= 300


@given(QUEUES, st.floats(0, 1), st.floats(0.01, 1))
def test_progressive_signalling_moves_at_most_a_step_and_towards_the_target(
    queue, before, max_step
):
    law = QueueLaw(q_low=10, q_high=50, max_step=max_step)
    after = law.update(Level(before), seen(queue), 1.0).level
    assert abs(after - before) <= max_step + 1e-12
    assert abs(after - law.target(queue)) <= abs(before - law.target(queue))


def test_known_answers():
    law = QueueLaw(q_low=10, q_high=50, max_step=1.0)
    assert [law.target(queue) for queue in (0, 10, 30, 50, 99)] == [0, 0, 0.5, 1, 1]
    # Running requests count: with a large batch nothing ever waits.
    assert law.update(Level(0.0), seen(30, running=30), 1.0).level == 0.5
    slow = QueueLaw(q_low=10, q_high=50, max_step=0.2)
    state = slow.start()
    trace = []
    for queue in (60, 60, 60, 0, 0):
        state = slow.update(state, seen(queue), 1.0)
        trace.append(state.level)
    assert trace == pytest.approx([0.2, 0.4, 0.6, 0.4, 0.2])


def test_a_threshold_is_full_congestion_above_it_and_none_up_to_it():
    law = Threshold(limit=3)
    queues = (0, 3, 4, 99, 3)
    assert [law.update(Level(0.5), seen(q, running=q), 1.0).level for q in queues] == [
        0,
        0,
        1,
        1,
        0,
    ]
    with pytest.raises(ConfigError, match=r"^limit=-1: must be 0 or more"):
        Threshold(limit=-1)


def test_no_control_stays_at_zero():
    law = NoControl()
    assert law.update(law.start(), seen(10_000), 1.0).level == 0.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"q_low": -1, "q_high": 5, "max_step": 1}, "^q_low=-1: must be 0 or more"),
        ({"q_low": 5, "q_high": 5, "max_step": 1}, "^q_high=5.0: must be greater than"),
        ({"q_low": 5, "q_high": 9, "max_step": 0}, "^max_step=0: must be in"),
    ],
)
def test_wrong_thresholds_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        QueueLaw(**values)
