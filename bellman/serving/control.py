"""The control configuration of a server: JSON in BELLMAN_CONTROL or in PUT /bellman/control."""

import json
import os
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from hydra.utils import get_class
from omegaconf import OmegaConf

from bellman.admission.accept_all import AcceptAll
from bellman.build import build
from bellman.controllers.none import NoControl
from bellman.engines.base import Control
from bellman.errors import ConfigError, require

CONTROL = "BELLMAN_CONTROL"
"""Environment variable: the control that a server starts with, as JSON."""
ALLOWED = "BELLMAN_CONTROL_ALLOWED"
"""Environment variable: `1` lets PUT /bellman/control from this machine switch it."""
DEFAULT_PERIOD_S = 1.0
LONGEST_S = 86400
KEYS = ("controller", "admission", "period_s")


def parse_control(values: object) -> Control:
    """Build a control from `{"controller": {"_target_": ...}, "admission": {...}, "period_s": 1}`.

    Each entry may be absent: no control, accept all, 1 s. Raises `ConfigError`.
    """
    if not isinstance(values, Mapping):
        raise ConfigError("control", values, f"must be a JSON object of {', '.join(KEYS)}")
    for key in values:
        require(key in KEYS, f"control.{key}", values[key], f"unknown key, known: {KEYS}")
    period_s = values.get("period_s", DEFAULT_PERIOD_S)
    if isinstance(period_s, bool) or not isinstance(period_s, int | float):
        raise ConfigError("control.period_s", period_s, "must be seconds")
    require(0 < period_s <= LONGEST_S, "control.period_s", period_s, f"must be > 0, <= {LONGEST_S}")
    return Control(
        controller=_variant(values, "controller", "bellman.controllers.", "update") or NoControl(),
        admission=_variant(values, "admission", "bellman.admission.", "open") or AcceptAll(),
        period_s=float(period_s),
    )


def control_from_environment() -> Control:
    """Return the control in BELLMAN_CONTROL, or no control; raises `ConfigError`."""
    text = os.environ.get(CONTROL, "").strip() or "{}"
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ConfigError(CONTROL, text, f"is not JSON: {error}") from None
    return parse_control(values)


def _variant(values: Mapping[str, Any], key: str, package: str, method: str) -> Any:
    """Build the variant under `key`, whose class must live in `package` and have `method`."""
    node = values.get(key)
    if node is None:
        return None
    if not isinstance(node, Mapping):
        raise ConfigError(f"control.{key}", node, "must be an object with _target_")
    # OmegaConf would look such a value up, in the environment for one, and an error would show it.
    require("${" not in json.dumps(node), f"control.{key}", node, "must not refer to other values")
    target = str(node.get("_target_"))
    allowed = f"must be a class of {package}*"
    require(target.startswith(package), f"control.{key}._target_", target, allowed)
    try:
        cls = get_class(target)
    except Exception:  # hydra raises several kinds, with the import's traceback in the message
        raise ConfigError(f"control.{key}._target_", target, allowed) from None
    is_variant = is_dataclass(cls) and callable(getattr(cls, method, None))
    require(is_variant, f"control.{key}._target_", target, f"{allowed} with {method}()")
    return build(OmegaConf.create(dict(node)), f"control.{key}", package.rstrip("."))
