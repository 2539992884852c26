"""Configuration nodes become validated dataclasses, or one clear line."""

import sys
from dataclasses import dataclass
from typing import Any

import pytest
from omegaconf import OmegaConf

from bellman.build import build
from bellman.controllers.bellman import QueueLaw
from bellman.errors import ConfigError
from bellman.schema import schema

LAW = {
    "_target_": "bellman.controllers.bellman.QueueLaw",
    "q_low": 20,
    "q_high": 100,
    "max_step": 0.1,
}


@schema
class Holder:
    law: Any
    size: int = 3
    best: QueueLaw | None = None


@dataclass(frozen=True)
class Unchecked:
    size: int = 3


def holder(**values):
    return build({"_target_": path_of(Holder), "law": LAW} | values, "holder")


def path_of(cls):
    sys.modules.setdefault(__name__, sys.modules[cls.__module__])
    return f"{__name__}.{cls.__name__}"


def test_a_node_becomes_its_dataclass():
    assert build(OmegaConf.create(LAW), "controller") == QueueLaw(20.0, 100.0, 0.1)


def test_a_nested_target_is_built_first():
    law = QueueLaw(20.0, 100.0, 0.1)
    assert holder(size="7", best=LAW) == Holder(law, 7, law)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q_lo": 3}, "controller.q_lo=3: unknown key, known are q_low, q_high, max_step"),
        ({"q_low": "many"}, "controller.q_low=many: must be a finite number, 0 or more"),
        ({"q_high": 10}, "controller.q_high=10.0: must be greater than q_low=20"),
    ],
)
def test_mistakes_name_the_full_key_and_the_value(change, message):
    with pytest.raises(ConfigError, match=message):
        build(OmegaConf.create(LAW | change), "controller")


def test_a_missing_value_is_named():
    node = {key: value for key, value in LAW.items() if key != "q_low"}
    for given in (node, node | {"q_low": "???"}):
        with pytest.raises(ConfigError, match=r"^controller\.q_low=\?\?\?: must be given$"):
            build(OmegaConf.create(given), "controller")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"law": LAW | {"q_low": -1}}, "holder.law.q_low=-1: must be 0 or more"),
        ({"law": 3}, "holder.law=3: must be one of the group's options, with its entries"),
        ({"best": LAW | {"max_step": 2}}, "holder.best.max_step=2: must be in (0, 1]"),
        ({"size": LAW}, f"holder.size={LAW}: must be a whole number"),
    ],
)
def test_a_nested_mistake_has_the_full_key(values, message):
    with pytest.raises(ConfigError) as caught:
        holder(**values)
    assert str(caught.value) == message


@pytest.mark.parametrize("path", [path_of(Unchecked), "pathlib.Path"])
def test_a_class_that_does_not_check_itself_is_refused(path):
    with pytest.raises(ConfigError, match=r"holder\._target_=.*: must be a class made by @schema"):
        build({"_target_": path, "size": 3}, "holder")
