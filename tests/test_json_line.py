"""A line equals what the standard library writes."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bellman.json_line import json_line

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(exclude_categories=())),
    st.lists(st.floats()),
)


@dataclass(slots=True)
class Record:
    first: Any
    sécond: Any  # noqa: PLC2401 - a name need not be ASCII
    third: Any


@given(VALUES, VALUES, VALUES)
def test_a_record_is_written_as_the_standard_library_writes_it(first, second, third):
    values = {"first": first, "sécond": second, "third": third}
    assert json_line(Record(first, second, third)) == json.dumps(values, ensure_ascii=False)
