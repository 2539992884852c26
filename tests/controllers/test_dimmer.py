"""Brownout's dimmer: its recursion by hand, its loop on its own model, and its two traps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellman.controllers.dimmer import Dimmer
from bellman.sensing.observation import Observation

LAW = Dimmer(target_e2e_s=10.0, pole=0.9, forgetting=0.95)


class Requests:
    """One request finishes each period, after a latency that the test chooses."""

    def __init__(self):
        self.seconds, self.count = 0.0, 0

    def finish(self, latency_s):
        self.seconds, self.count = self.seconds + latency_s, self.count + 1
        return self.none()

    def none(self, outstanding=3):
        return Observation(0.0, 0, outstanding, e2e_sum_s=self.seconds, e2e_count=self.count)


def begun(law=LAW):
    requests = Requests()
    return requests, law.update(law.start(), requests.none(), 0.5)


def test_two_periods_by_hand():
    requests, state = begun()
    assert (state.dimmer, state.gain_s, state.covariance) == (1.0, 10.0, 1000.0)
    state = LAW.update(state, requests.finish(30.0), 0.5)
    correction = 1000 / 1000.95
    gain_s, covariance = 10 + correction * 20, 1000 * (1 - correction) / 0.95
    assert state.gain_s == pytest.approx(gain_s) == pytest.approx(29.981, abs=1e-3)
    assert state.covariance == pytest.approx(covariance) == pytest.approx(0.999, abs=1e-3)
    dimmer = 1 - 0.1 * 20 / gain_s
    assert state.dimmer == pytest.approx(dimmer) == pytest.approx(0.93329, abs=1e-5)
    state = LAW.update(state, requests.finish(20.0), 0.5)
    correction = covariance * dimmer / (0.95 + covariance * dimmer**2)
    gain_s += correction * (20 - gain_s * dimmer)
    assert state.gain_s == pytest.approx(gain_s)
    assert state.dimmer == pytest.approx(dimmer - 0.1 * 10 / gain_s)
    assert state.level == pytest.approx(1 - state.dimmer)


@settings(max_examples=30)
@given(gain_s=st.floats(10.5, 500.0))
def test_where_latency_is_as_modelled_the_error_shrinks_by_the_pole(gain_s):
    requests, state = begun()
    errors_s = []
    for _ in range(60):
        latency_s = gain_s * state.dimmer
        errors_s.append(latency_s - 10.0)
        state = LAW.update(state, requests.finish(latency_s), 0.5)
    assert errors_s[40] == pytest.approx(errors_s[10] * 0.9**30, rel=0.02, abs=1e-9)


def test_a_period_in_which_nothing_finished_changes_nothing():
    requests, state = begun()
    state = LAW.update(state, requests.finish(30.0), 0.5)
    after = LAW.update(state, requests.none(), 0.5)
    assert (after.dimmer, after.gain_s, after.covariance) == (
        state.dimmer,
        state.gain_s,
        state.covariance,
    )


def test_the_covariance_does_not_wind_up_while_the_dimmer_is_shut():
    requests, state = begun()
    for _ in range(2000):
        state = LAW.update(state, requests.finish(1e4), 0.5)
    assert state.dimmer == 0.0
    shut = state
    for _ in range(500):
        state = LAW.update(state, requests.finish(1e4), 0.5)
    assert (state.gain_s, state.covariance) == (shut.gain_s, shut.covariance)
    state = LAW.update(state, requests.finish(1.0), 0.5)
    assert 0 < state.dimmer < 0.1  # it opens by the pole, and does not jump


@settings(max_examples=30)
@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=40))
def test_the_gain_never_turns_around_and_the_covariance_is_bounded(latencies_s):
    requests, state = begun()
    for latency_s in latencies_s:
        state = LAW.update(state, requests.finish(latency_s), 0.5)
        assert state.gain_s > 0
        assert 0 <= state.covariance <= 1000
        before = state.dimmer
        late = LAW.update(state, requests.finish(50.0), 0.5)
        assert late.dimmer <= before


def test_an_empty_engine_opens_the_dimmer_and_teaches_nothing():
    requests, state = begun()
    for _ in range(30):
        state = LAW.update(state, requests.finish(60.0), 0.5)
    gain_s = LAW.update(state, requests.none(0), 0.5).gain_s
    for _ in range(400):
        state = LAW.update(state, requests.none(0), 0.5)
    assert state.dimmer == 1.0
    assert state.gain_s == gain_s
