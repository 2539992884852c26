"""The signal's wire form and its receiver."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.signal import Signal, SignalReceiver, format_level, parse_level


@given(st.floats(0, 1))
def test_a_level_survives_the_header(level):
    assert parse_level([format_level(level)]) == pytest.approx(level, abs=5e-5)


@pytest.mark.parametrize(
    "values", [["nan"], ["1e309"], ["-3"], ["0,5"], ["1.01"], ["inf"], [""], ["0.5", "0.5"]]
)
def test_a_bad_header_changes_nothing_and_is_counted(values):
    receiver = SignalReceiver()
    receiver.receive(["0.25"], now_s=1.0)
    receiver.receive(values, now_s=2.0)
    assert receiver.last == Signal(0.25, 1.0)
    assert (receiver.received, receiver.malformed, receiver.absent) == (1, 1, 0)


def test_a_missing_header_is_counted_apart():
    receiver = SignalReceiver()
    receiver.receive([], now_s=1.0)
    assert receiver.last is None
    assert (receiver.received, receiver.malformed, receiver.absent) == (0, 0, 1)
