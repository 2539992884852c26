"""Configuration nodes become validated dataclasses, or one clear line."""

from dataclasses import dataclass
from typing import Any

import pytest
from omegaconf import OmegaConf

from bellman.build import build
from bellman.controllers.bellman import QueueLaw
from bellman.errors import ConfigError

LAW = {
    "_target_": "bellman.controllers.bellman.QueueLaw",
    "q_low": 20,
    "q_high": 100,
    "max_step": 0.1,
}


@dataclass(frozen=True)
class Holder:
    law: Any
    size: int = 3


def test_a_node_becomes_its_dataclass():
    assert build(OmegaConf.create(LAW), "controller") == QueueLaw(20.0, 100.0, 0.1)


def test_a_nested_target_is_built_first():
    node = {"_target_": f"{__name__}.Holder", "law": LAW, "size": "7"}
    import sys

    sys.modules.setdefault(__name__, sys.modules[Holder.__module__])
    assert build(OmegaConf.create(node), "holder") == Holder(QueueLaw(20.0, 100.0, 0.1), 7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q_lo": 3}, "controller.q_lo=3: unknown key, known are q_low, q_high, max_step"),
        ({"q_low": "many"}, "controller.q_low=many: Value 'many' of type 'str'"),
        ({"q_high": 10}, "controller.q_high=10.0: must be greater than controller.q_low=20.0"),
    ],
)
def test_mistakes_name_the_full_key_and_the_value(change, message):
    with pytest.raises(ConfigError, match=message):
        build(OmegaConf.create(LAW | change), "controller")


def test_a_missing_value_is_named():
    node = {key: value for key, value in LAW.items() if key != "q_low"}
    with pytest.raises(ConfigError, match=r"controller\.q_low"):
        build(OmegaConf.create(node), "controller")
