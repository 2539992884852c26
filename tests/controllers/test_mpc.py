"""Our predictive law: what it identifies, what it predicts, and what it then chooses."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellman.controllers.fluid import Load, served_tokens
from bellman.controllers.mpc import Mpc, batch_places
from bellman.controllers.step_model import StepModel
from bellman.sensing.observation import Observation
from tests.controllers.observed import ObservedEngine

LAW = Mpc(limit_e2e_s=10.0, length_margin=1.0, ladder_ratio=2**0.5, alpha_min=0.25, memory_s=60.0)


@settings(max_examples=40)
@given(
    base_s=st.floats(0.0, 0.1),
    sequence_s=st.floats(0.0, 1e-3),
    batches=st.lists(st.integers(1, 500), min_size=2, max_size=20, unique=True),
)
def test_the_step_model_finds_the_line_that_was_observed(base_s, sequence_s, batches):
    model = StepModel()
    for batch in batches:
        model = model.add(batch, base_s + sequence_s * batch, keep=0.98)
    base, slope = model.coefficients()
    for batch in batches:
        assert base + slope * batch == pytest.approx(base_s + sequence_s * batch, abs=1e-6)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(10, 0.02)], (0.02, 0.0)),  # one batch tells no slope
        ([(10, 0.01), (10, 0.03)], (0.02, 0.0)),
        ([(10, 0.03), (20, 0.01)], (0.02, 0.0)),  # no batch is faster for being larger
        ([(10, 0.0), (20, 0.03)], (0.0, 0.001)),  # no batch is faster than free
    ],
)
def test_the_step_model_keeps_to_what_can_be(pairs, expected):
    model = StepModel()
    for batch, step_s in pairs:
        model = model.add(batch, step_s, keep=1.0)
    assert model.coefficients() == pytest.approx(expected)


def test_old_pairs_are_forgotten():
    model = StepModel().add(10, 1.0, keep=0.5)
    for batch in (10, 20) * 30:
        model = model.add(batch, 0.001 * batch, keep=0.5)
    assert model.coefficients() == pytest.approx((0.0, 0.001), abs=1e-6)


def load(**changes):
    values = {
        "outstanding": 100.0,
        "places": math.inf,
        "tokens": 400.0,
        "arrivals_rps": 10.0,
        "base_s": 0.01,
        "sequence_s": 0.0001,
    }
    return Load(**(values | changes))


def test_a_steady_batch_serves_at_its_steps():
    # 100 requests of 200 tokens at 20 ms a step: 25 a second end, and as many come.
    steady = load(tokens=200.0, arrivals_rps=25.0)
    assert served_tokens(steady, 200.0, 4.0) == pytest.approx(4.0 / 0.02)
    # Ones that are twice as long fill the batch while they are there, and slow it down.
    assert served_tokens(steady, 400.0, 4.0) < 4.0 / 0.02


def test_what_finds_no_place_waits_for_those_before_it():
    # 50 places at 15 ms a step: 50 / (100 x 0.015) = 33.3 a second; 100 are ahead for 3 s.
    full = load(outstanding=150.0, places=50.0, tokens=100.0, arrivals_rps=100.0)
    assert served_tokens(full, 100.0, 2.8) == 0.0
    assert served_tokens(full, 100.0, 6.0) == pytest.approx(3.0 / 0.015, rel=0.1)


@settings(max_examples=40)
@given(
    outstanding=st.floats(0.0, 1000.0),
    arrivals_rps=st.floats(0.0, 50.0),
    more=st.floats(0.0, 100.0),
    tokens=st.floats(50.0, 400.0),
)
def test_more_load_never_serves_more(outstanding, arrivals_rps, more, tokens):
    light = load(outstanding=outstanding, arrivals_rps=arrivals_rps, places=200.0)
    heavy = load(outstanding=outstanding, arrivals_rps=arrivals_rps + more, places=200.0)
    assert served_tokens(heavy, tokens, 10.0) <= served_tokens(light, tokens, 10.0) + 1e-9


@pytest.mark.parametrize(
    ("observation", "arrived", "places"),
    [
        (Observation(0.0, 9, 50, kv_usage=0.5), 5.0, 50),  # more wait than came: it is full
        (Observation(0.0, 3, 50, kv_usage=0.5), 5.0, 100),  # they wait for the step to end
        (Observation(0.0, 0, 50, kv_usage=None), 5.0, math.inf),
        (Observation(0.0, 0, 0, kv_usage=0.0), 0.0, math.inf),
    ],
)
def test_the_places_of_the_batch_are_read_off_the_load(observation, arrived, places):
    assert batch_places(observation, arrived) == places


def test_it_identifies_the_engine_that_it_sees():
    engine = ObservedEngine(tokens=400.0)
    state = LAW.start()
    for outstanding in [20, 30, 40] * 60:
        state = LAW.update(state, engine.observe(outstanding), 1.0)
    base_s, sequence_s = state.estimates.steps.coefficients()
    assert base_s + 30 * sequence_s == pytest.approx(engine.step_s(30), rel=0.05)
    assert state.estimates.default_tokens == pytest.approx(400.0, rel=0.05)
    rate_rps = 30 / engine.step_s(30) / 400
    assert state.estimates.arrivals_rps == pytest.approx(rate_rps, rel=0.3)


def test_it_chooses_the_longest_answer_that_is_predicted_to_be_in_time():
    """Known from a linear model of 6 ms + 0.15 ms a request and answers of 400 tokens.

    20 requests: 400 tokens x 9 ms = 3.6 s; 100: 8.4 s; 200: 14.4 s, and 283 tokens take 10.2 s,
    200 tokens 7.2 s.
    """
    engine = ObservedEngine(tokens=400.0, places=1000)
    state = LAW.start()
    found = []
    for outstanding in [20] * 60 + [100] * 60 + [200] * 60:
        state = LAW.update(state, engine.observe(outstanding), 1.0)
        found.append(state.scale)
    assert set(found[:120]) == {1.0}
    assert found[-1] in (pytest.approx(0.5), pytest.approx(2**-0.5))
    assert found[-1] < 1.0


def test_an_answer_of_twice_the_mean_must_be_in_time_where_that_is_the_margin():
    """40 requests: 400 tokens take 4.8 s, 800 take 9.6 s; 60 requests: 800 take 12 s."""
    wide = replace(LAW, length_margin=2.0)
    for outstanding, shortens in ((40, False), (60, True)):
        engine = ObservedEngine(tokens=400.0)
        states = {law: law.start() for law in (LAW, wide)}
        for _ in range(120):
            seen = engine.observe(outstanding)
            states = {law: law.update(state, seen, 1.0) for law, state in states.items()}
        assert states[LAW].scale == 1.0
        assert (states[wide].scale < 1.0) == shortens


def test_its_scales_are_the_applications():
    assert LAW.scales() == pytest.approx([1.0, 0.70711, 0.5, 0.35355, 0.25], abs=1e-5)


def test_a_server_that_restarted_teaches_nothing():
    engine = ObservedEngine()
    state = LAW.start()
    for _ in range(30):
        state = LAW.update(state, engine.observe(20), 1.0)
    after = LAW.update(
        state, Observation(0.0, 0, 20, generated_tokens_total=0, completed_total=0), 1.0
    )
    assert after.estimates == state.estimates
