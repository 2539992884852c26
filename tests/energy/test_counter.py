"""A counter between its readings, against a known power."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.energy.counter import CounterWentBack, EnergyCounter


@given(
    times=st.lists(st.floats(0.001, 3.0), min_size=2, max_size=30),
    at=st.floats(0.0, 1.0),
    watts=st.floats(1.0, 5000.0),
)
def test_at_constant_power_every_instant_is_exact(
    times: list[float], at: float, watts: float
) -> None:
    counter, now_s = EnergyCounter(), 100.0
    counter.add(now_s, 5e6)
    counter.begin()
    for gap_s in times:
        now_s += gap_s
        counter.add(now_s, 5e6 + watts * (now_s - 100.0))
    instant_s = 100.0 + at * (now_s - 100.0)
    assert counter.joules_at(instant_s) == pytest.approx(watts * (instant_s - 100.0), abs=1e-4)
    assert counter.joules_at(now_s) == counter.counted_j


@given(st.lists(st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 900.0)), min_size=1, max_size=40))
def test_energy_never_falls_from_one_instant_to_a_later_one(
    steps: list[tuple[float, float]],
) -> None:
    counter = EnergyCounter()
    time_s = joules = 0.0
    for gap_s, more_j in [(0.0, 0.0), *steps]:
        time_s, joules = time_s + gap_s, joules + more_j
        counter.add(time_s, joules)
    instants = [counter.joules_at(time_s * (share / 20)) for share in range(21)]
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(instants))
    assert instants[-1] == pytest.approx(counter.counted_j, abs=1e-6)


def test_one_that_goes_back_is_refused() -> None:
    counter = EnergyCounter()
    counter.add(1.0, 50.0)
    with pytest.raises(CounterWentBack, match="from 50 J to 3 J"):
        counter.add(2.0, 3.0)


def test_steps_and_standing_still() -> None:
    counter = EnergyCounter()
    for tick in range(40):  # read every 20 ms, moves every 100 ms
        counter.add(tick * 0.02, tick // 5)
    assert counter.step_s == pytest.approx(0.1)
    for tick in range(40, 100):
        counter.add(tick * 0.02, 7.0)
    assert counter.still_s == pytest.approx(99 * 0.02 - 35 * 0.02)


def test_the_counting_begins_where_it_is_told() -> None:
    counter = EnergyCounter()
    counter.add(0.0, 10.0)
    counter.add(1.0, 30.0)
    counter.begin()
    counter.add(3.0, 90.0)
    assert counter.joules_at(2.0) == pytest.approx(30.0)
    assert counter.counted_j == 60.0
