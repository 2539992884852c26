"""The way from the published level to a request: late, lost, or not listened to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.signal import Signal
from bellman.signal_path import SignalPath, listens


def test_without_delay_or_loss_the_last_level_is_there_at_once():
    path = SignalPath()
    path.receive(["0.2500"], 1.0)
    path.receive([], 2.0)
    path.receive(["nonsense"], 3.0)
    assert path.last(3.0) == Signal(0.25, 1.0)
    assert (path.receiver.received, path.receiver.absent, path.receiver.malformed) == (1, 1, 1)


def test_a_delayed_level_arrives_exactly_its_delay_later_and_in_order():
    path = SignalPath(delay_s=5.0)
    path.receive(["0.1000"], 1.0)
    path.receive(["0.2000"], 2.0)
    assert path.last(5.999) is None
    assert path.last(6.0) == Signal(0.1, 6.0)
    assert path.last(100.0) == Signal(0.2, 7.0)


def test_lost_levels_never_arrive_and_are_the_configured_share():
    path = SignalPath(loss=0.9, seed=3)
    for number in range(5_000):
        path.receive(["0.5000"], float(number))
    assert path.receiver.received == pytest.approx(500, abs=70)
    again = SignalPath(loss=0.9, seed=3)
    for number in range(5_000):
        again.receive(["0.5000"], float(number))
    assert again.receiver.received == path.receiver.received


def test_who_listens_is_the_configured_share_whatever_happens_before():
    chosen = [listens(number, 0.25, 1) for number in range(10_000)]
    assert sum(chosen) == pytest.approx(2_500, abs=150)
    path = SignalPath(listening=0.25, seed=1)
    path.receive(["0.5000"], 0.0)
    heard = [path.heard_by(number, 1.0) is not None for number in range(10_000)]
    assert heard == chosen


@given(st.integers(min_value=0), st.floats(0, 1), st.floats(0, 1), st.integers(min_value=0))
def test_who_listens_at_a_share_listens_at_every_larger_one(number, one, other, seed):
    small, large = sorted((one, other))
    assert not listens(number, small, seed) or listens(number, large, seed)
    assert listens(number, 1.0, seed)
    assert not listens(number, 0.0, seed)
