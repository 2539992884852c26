"""A schema checks itself, from Python as from YAML: a line of key, value, what is allowed."""

import dataclasses
import math
import pickle
from dataclasses import field
from typing import Any, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.errors import ConfigError, require
from bellman.load.processes import PROCESSES, Process
from bellman.schema import Count, Name, NotNegative, OneOrMore, Positive, Share, Whole, schema

LIST = "a list, each a whole number, 1 or more, not empty"


@schema
class Inner:
    step: Positive = 1.0


@schema
class Everything:
    low: NotNegative
    share: Share = 0.5
    count: Count | None = None
    whole: Whole = 0
    way: Literal["header", "poll"] = "poll"
    kind: Literal["a", "b", "c"] = "a"
    loads: OneOrMore[Count] = field(default_factory=lambda: [1])
    words: dict[str, Count] = field(default_factory=dict)
    flag: bool = False
    name: Name = "x"
    inner: Inner = field(default_factory=Inner)
    more: Any = None

    def __post_init__(self) -> None:
        require(self.share > self.low, "share", self.share, f"must be greater than {self.low:g}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "low=???: must be given"),
        ({"lo": 1}, f"lo=1: unknown key, known are {', '.join(Everything.__dataclass_fields__)}"),
        ({"low": -1}, "low=-1: must be 0 or more"),
        ({"low": "many"}, "low=many: must be a finite number, 0 or more"),
        ({"low": None}, "low=None: must be a finite number, 0 or more"),
        ({"low": math.nan}, "low=nan: must be a finite number, 0 or more"),
        ({"low": math.inf}, "low=inf: must be a finite number, 0 or more"),
        ({"low": True}, "low=True: must be a finite number, 0 or more"),
        ({"low": 0.7}, "share=0.5: must be greater than 0.7"),
        ({"low": 0, "share": 0}, "share=0: must be in (0, 1]"),
        ({"low": 0, "count": 0}, "count=0: must be 1 or more, or null"),
        ({"low": 0, "count": 2.5}, "count=2.5: must be a whole number, 1 or more, or null"),
        ({"low": 0, "whole": 3.0}, "whole=3.0: must be a whole number, 0 or more"),
        ({"low": 0, "whole": True}, "whole=True: must be a whole number, 0 or more"),
        ({"low": 0, "way": "pigeon"}, "way=pigeon: must be header or poll"),
        ({"low": 0, "kind": "d"}, "kind=d: must be one of a, b, c"),
        ({"low": 0, "loads": []}, f"loads=[]: must be {LIST}"),
        ({"low": 0, "loads": 3}, f"loads=3: must be {LIST}"),
        ({"low": 0, "loads": [1, 0]}, "loads.1=0: must be 1 or more"),
        ({"low": 0, "loads": [True]}, f"loads=[True]: must be {LIST}"),
        ({"low": 0, "loads": [1, "x"]}, "loads.1=x: must be a whole number, 1 or more"),
        ({"low": 0, "words": {"a": 0}}, "words.a=0: must be 1 or more"),
        ({"low": 0, "words": []}, "words=[]: must be a mapping"),
        ({"low": 0, "flag": "perhaps"}, "flag=perhaps: must be true or false"),
        ({"low": 0, "name": ""}, "name=: must be text, not empty"),
        ({"low": 0, "name": True}, "name=True: must be text, not empty"),
        ({"low": 0, "inner": 3}, "inner=3: must be a mapping with step"),
        ({"low": 0, "inner": {"step": 0}}, "inner.step=0: must be greater than 0"),
        ({"low": 0, "inner": {"stop": 0}}, "inner.stop=0: unknown key, known are step"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_key_value_and_what_is_allowed(values, message):
    with pytest.raises(ConfigError) as caught:
        Everything(**values)
    assert str(caught.value) == message


def test_by_position_the_key_is_the_same():
    with pytest.raises(ConfigError, match=r"^share=2: must be in \(0, 1\]$"):
        Everything(0, 2)


def test_values_are_taken_as_they_are_meant():
    made = Everything("0", 1, loads=(1, 2), words={"a": "3"}, name=2024)
    assert (made.low, made.share, made.loads, made.words) == (0.0, 1.0, [1, 2], {"a": 3})
    assert made.name == "2024"
    assert isinstance(made.share, float)


def test_a_schema_is_a_frozen_dataclass():
    made = Everything(0)
    assert pickle.loads(pickle.dumps(made)) == made
    assert dataclasses.asdict(made)["inner"] == {"step": 1.0}
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.low = 0.1
    with pytest.raises(ConfigError, match=r"^low=-1"):
        dataclasses.replace(made, low=-1)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9))
def test_a_range_is_its_comparison(value):
    if 0 < value <= 1:
        assert Everything(0, value).share == value
    else:
        with pytest.raises(ConfigError):
            Everything(0, value)


def test_the_processes_that_may_be_asked_for_are_those_there_are():
    assert get_args(Process) == tuple(PROCESSES)
