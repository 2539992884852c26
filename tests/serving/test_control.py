"""The control's JSON: what is built, and what is refused with its key."""

from typing import Any

import pytest

from bellman.admission.accept_all import AcceptAll
from bellman.admission.breaker import Breaker
from bellman.admission.queue_limit import QueueLimit
from bellman.controllers.bellman import QueueLaw
from bellman.controllers.none import NoControl
from bellman.engines.base import Control
from bellman.engines.openai.control import control_node
from bellman.errors import ConfigError
from bellman.serving.control import control_from_environment, parse_control

BREAKER = {"_target_": "bellman.admission.breaker.Breaker"}
BASE = {"_target_": "bellman.admission.base.Arrival"}
LAW = {"_target_": "bellman.controllers.bellman.QueueLaw", "q_low": 2, "q_high": 8, "max_step": 1}


def test_what_a_client_sends_is_what_the_server_builds() -> None:
    control = Control(QueueLaw(1.0, 9.0, 0.5), QueueLimit(7), 0.25)
    assert parse_control(control_node(control)) == control


def test_an_admission_within_an_admission_is_built_too() -> None:
    control = Control(NoControl(), Breaker(QueueLimit(7), open_s=3.0), 0.25)
    assert parse_control(control_node(control)) == control


def test_nothing_given_is_no_control(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BELLMAN_CONTROL", raising=False)
    assert control_from_environment() == Control(NoControl(), AcceptAll(), 1.0)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ([], "control="),
        ({"controler": LAW}, "control.controler"),
        ({"period_s": 0}, "control.period_s"),
        ({"period_s": "1"}, "control.period_s"),
        ({"period_s": float("nan")}, "control.period_s"),
        ({"period_s": float("inf")}, "control.period_s"),
        ({"controller": "none"}, "control.controller"),
        ({"controller": {}}, "control.controller._target_"),
        ({"controller": {**LAW, "q_high": 1}}, "controller.q_high"),
        ({"controller": {**LAW, "q_top": 1}}, "control.controller.q_top"),
        ({"controller": {"_target_": LAW["_target_"]}}, "control.controller.q_low"),
        ({"controller": {**LAW, "q_low": "${oc.env:HOME}"}}, "control.controller="),
        ({"period_s": 10**400}, "control.period_s"),
        ({"controller": {"_target_": "os.system"}}, "control.controller._target_"),
        ({"controller": {"_target_": "subprocess.Popen"}}, "control.controller._target_"),
        ({"controller": {"_target_": "bellman.controllers.none.asyncio"}}, "_target_"),
        ({"controller": {"_target_": "bellman.controllers.base.Level"}}, "_target_"),
        ({"controller": {"_target_": "bellman.controllers.nowhere.X"}}, "_target_"),
        ({"controller": {"_target_": "bellman.admission.queue_limit.QueueLimit"}}, "_target_"),
        ({"admission": LAW}, "control.admission._target_"),
        ({"admission": {**BREAKER, "admission": LAW}}, "control.admission.admission._target_"),
        ({"admission": {**BREAKER, "admission": BASE}}, "control.admission.admission._target_"),
    ],
)
def test_what_is_refused(values: Any, key: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        parse_control(values)


def test_an_environment_that_is_no_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLMAN_CONTROL", "{controller")
    with pytest.raises(ConfigError, match="BELLMAN_CONTROL"):
        control_from_environment()
