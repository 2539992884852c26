"""The signal's wire form and its receiver."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bellman.signal import Signal, SignalReceiver, format_level, parse_level

MALFORMED = [
    *("nan", "inf", "Infinity", "1e309", "1e-3", "1e-400", "1E0", "0x1", "0b1", "true", ""),
    *("-3", "-0", "-0.0", "+0.5", "+1", "1.01", "1.0001", "2", "10", "1.00000000000000000000001"),
    *("0,5", "0.5, 0.5", "0.5;q=1", '"0.5"', ".5", "1.", "0.", "0..5", "0.5.5", "0 .5", "0. 5"),
    *("0_1", "1_0", "0.5_0", "٠.٥", "\uff10.\uff15", "0.\u0665", "½", "\u2460"),
    *("0.5\n", "\r\n0.5", "\u00a00.5", "0.5\u2003", "0.5\x00", "\x0b0.5", "\x1f0.5"),
    *("0." + "5" * 31, "0." + "0" * 100_000, "0" * 100_000 + ".5", "9" * 5_000),
]


@given(st.floats(0, 1))
@example(-0.0)
@example(1.0)
@example(5e-324)
def test_a_level_survives_the_header(level):
    assert parse_level([format_level(level)]) == pytest.approx(level, abs=5e-5)


@given(st.floats().filter(lambda number: not 0 <= number <= 1))
def test_what_is_no_level_is_not_written(number):
    with pytest.raises(ValueError, match="is no level"):
        format_level(number)


@given(st.text() | st.from_regex(r"[ \t]*[-+]?[0-9_.,e]{0,6}[ \t]*", fullmatch=True))
def test_only_plain_decimals_in_the_range_are_read(text):
    bare = text.strip(" \t")
    plain = re.fullmatch("[0-9]+([.][0-9]+)?", bare) is not None and len(bare) <= 32
    expected = float(bare) if plain and float(bare) <= 1 else None
    assert parse_level([text]) == expected


@pytest.mark.parametrize("value", ["0.5", " 0.5", "0.5\t", " \t 0.5 \t ", "00.50", "0.500000"])
def test_blanks_around_a_level_and_zeros_are_no_matter(value):
    assert parse_level([value]) == 0.5


@pytest.mark.parametrize("values", [*([value] for value in MALFORMED), ["0.5", "0.5"]])
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
