"""A line reads back as what was written."""

import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.json_line import json_line

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    NUMBERS,
    st.text(),
    st.lists(NUMBERS),
)


@dataclass(slots=True)
class Record:
    first: Any
    sécond: Any  # noqa: PLC2401 - a name need not be ASCII
    third: Any


@given(VALUES, VALUES, VALUES)
def test_a_line_of_json_holds_the_record(first, second, third):
    line = json_line(Record(first, second, third))
    assert line.endswith(b"\n")
    assert b"\n" not in line[:-1]
    assert json.loads(line) == {"first": first, "sécond": second, "third": third}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(value):
    line = json_line(Record(value, [1.0, value], None))
    assert json.loads(line) == {"first": None, "sécond": [1.0, None], "third": None}


def test_half_a_character_costs_itself_alone():
    line = json_line(Record("a\ud83d", "\ud83d\ude00", 3))
    assert json.loads(line) == {"first": "a\N{REPLACEMENT CHARACTER}", "sécond": "😀", "third": 3}
