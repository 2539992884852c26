"""What holds for every rule, whatever arrives: conservation, and no permit that leaks."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellman.admission.accept_all import AcceptAll
from bellman.admission.base import Admission
from bellman.admission.breaker import Breaker
from bellman.admission.gradient_limit import GradientLimit
from bellman.admission.queue_limit import QueueLimit
from bellman.admission.shed import Shed
from bellman.admission.tokens_per_minute import TokensPerMinute
from tests.admission.entrance import Entrance

RULES: list[Admission] = [
    AcceptAll(),
    QueueLimit(6),
    QueueLimit(tokens=2000),
    Shed(good_s=3.0),
    TokensPerMinute(5000),
    GradientLimit(smallest_limit=2, measured_requests=3, measure_every_s=5.0),
    Breaker(QueueLimit(3), least_requests=3, window_s=4.0, open_s=2.0, probes=2),
    Breaker(GradientLimit(smallest_limit=2, measured_requests=3), least_requests=2, open_s=1.0),
]
STEPS = st.lists(
    st.tuples(
        st.floats(0, 2),
        st.sampled_from(["arrive", "arrive", "ok", "error", "left"]),
        st.integers(1, 800),
    ),
    max_size=80,
)


def held(door: Any) -> int:
    """Return what a door still counts of requests that entered."""
    behind = getattr(door, "_behind", None)
    counted = getattr(door, "out", 0) + getattr(door, "tokens", 0)
    return int(counted) + (0 if behind is None else held(behind))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@settings(max_examples=40)
@given(steps=STEPS)
def test_each_request_enters_or_is_refused_and_all_permits_come_back(rule, steps) -> None:
    entrance = Entrance(rule)
    offered = refused = ended = 0
    for gap_s, what, tokens in steps:
        entrance.now_s += gap_s
        if what == "arrive":
            offered += 1
            refusal = entrance.ask(prompt_tokens=tokens)
            if refusal is not None:
                refused += 1
                assert refusal.status in (429, 503) and refusal.reason
                assert refusal.retry_after_s is None or refusal.retry_after_s >= 1
        elif entrance.permits:
            entrance.end(outcome=what)
            ended += 1
    admitted = ended + len(entrance.permits)
    assert offered == admitted + refused
    entrance.end(len(entrance.permits), "left")
    assert held(entrance.door) == 0
    entrance.now_s += 1000.0
    assert entrance.ask(prompt_tokens=1) is None  # no rule stays shut on an idle engine
    entrance.end()
    assert held(entrance.door) == 0


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_an_episode_begins_afresh(rule) -> None:
    def entered() -> list[bool]:
        entrance = Entrance(rule)
        answers = []
        for number in range(60):
            entrance.now_s = number / 5
            answers.append(entrance.ask(prompt_tokens=300) is None)
            if number % 3 == 0 and entrance.permits:
                entrance.end(outcome="left" if number % 2 else "ok")
        return answers

    assert entered() == entered()
