"""Turns a config node with `_target_` into its validated dataclass.

A variant (control law, arrival process, engine, meter...) is one dataclass and one YAML file that
names it. The dataclass is the schema: unknown keys, wrong types and wrong ranges are refused with
the full key, before anything runs. An entry that has a `_target_` of its own is built first; the
field that takes it is typed `Any`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from hydra.errors import HydraException
from hydra.utils import get_class
from omegaconf import Container, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from bellman.errors import ConfigError

TARGET = "_target_"
A_VARIANT = "must be one of the group's options, with its entries"


def build(node: Any, key: str, package: str = "") -> Any:
    """Build the dataclass that `node._target_` names from the node's other entries.

    `key` is the node's place in the configuration, for messages. `package` is the only one that a
    configuration of unknown origin may name. Raises `ConfigError`.
    """
    values = OmegaConf.to_container(node, resolve=True) if isinstance(node, DictConfig) else node
    if package:
        _check_origin(values, key, package)
    return _build_values(values, key)


def _check_origin(values: Any, key: str, package: str) -> None:
    """Refuse targets outside a package: importing them would run somebody's code."""
    if isinstance(values, dict):
        target = values.get(TARGET, package)
        if not re.fullmatch(rf"{re.escape(package)}(\.[a-zA-Z]\w*)*", str(target)):
            raise ConfigError(f"{key}.{TARGET}", target, f"must be in {package}")
        for name, value in values.items():
            _check_origin(value, f"{key}.{name}", package)


def _build_values(values: Any, key: str) -> Any:
    if not isinstance(values, dict) or TARGET not in values:
        raise ConfigError(key, values, A_VARIANT)
    others = {name: value for name, value in values.items() if name != TARGET}
    return build_class(find_target(values[TARGET], f"{key}.{TARGET}", get_class), others, key)


def find_target(path: object, key: str, find: Callable[[str], Any]) -> Any:
    """Import what a dotted path names, by Hydra's `find`; raises `ConfigError`."""
    try:
        return find(str(path))
    except (ImportError, ValueError, TypeError, HydraException) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(key, path, f"must be a dotted path: {reason}") from None


def _check_value(value: Any, key: str) -> None:
    """Refuse what no schema catches; an interpolation would be resolved where it is read."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(key, value, "must be a finite number")
    if "${" in str(value):
        raise ConfigError(key, value, "must be a value, not an interpolation")


def build_class(cls: type, values: Any, key: str) -> Any:
    """Build the dataclass `cls` from plain values, checked against its field types."""
    assert is_dataclass(cls)
    if not isinstance(values, dict):
        known = ", ".join(field.name for field in fields(cls))
        raise ConfigError(key, values, f"must be a mapping with {known}")
    types = {field.name: field.type for field in fields(cls) if field.init}
    names = list(types)
    schema = OmegaConf.structured(cls)
    OmegaConf.set_readonly(schema, False)  # frozen dataclasses come out read-only
    nested = {}
    for name, value in values.items():
        full_key = f"{key}.{name}" if key else str(name)
        if name not in names:
            raise ConfigError(full_key, value, f"unknown key, known are {', '.join(names)}")
        _check_value(value, full_key)
        if isinstance(value, dict) and TARGET in value:
            nested[name] = _build_values(value, full_key)
            continue
        if types[name] is Any and value is not None:
            raise ConfigError(full_key, value, A_VARIANT)
        try:
            OmegaConf.update(schema, name, value)
        except OmegaConfBaseException as error:
            raise ConfigError(full_key, value, str(error).splitlines()[0]) from None
    plain = {}
    for name in names:
        if name in nested:
            continue
        if OmegaConf.is_missing(schema, name):
            raise ConfigError(f"{key}.{name}" if key else name, "???", "must be given")
        value = schema[name]
        plain[name] = OmegaConf.to_object(value) if isinstance(value, Container) else value
    try:
        return cls(**plain, **nested)
    except ConfigError as error:
        # A class knows its own group's name; the full key depends on where the node stands.
        name = error.key.rpartition(".")[2]
        if name not in names:
            raise
        raise ConfigError(f"{key}.{name}" if key else name, error.value, error.allowed) from None
