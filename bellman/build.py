"""Turns a config node with `_target_` into its validated dataclass.

A variant (control law, arrival process, engine, meter...) is one class made by `bellman.schema`
and one YAML file that names it. Unknown keys, wrong types and wrong ranges are refused with the
full key, before anything runs. An entry that has a `_target_` of its own is built first, and so is
each of a mapping of such entries; the field that takes it is typed `Any`, or by the one class that
it takes.
"""

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_args

from hydra.errors import HydraException
from hydra.utils import get_class
from omegaconf import DictConfig, OmegaConf

from bellman.errors import ConfigError
from bellman.schema import MISSING, is_schema

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
    cls = find_target(values[TARGET], f"{key}.{TARGET}", get_class)
    if not is_schema(cls):
        raise ConfigError(f"{key}.{TARGET}", values[TARGET], "must be a class made by @schema")
    return build_class(cls, others, key)


def find_target(path: object, key: str, find: Callable[[str], Any]) -> Any:
    """Import what a dotted path names, by Hydra's `find`; raises `ConfigError`."""
    try:
        return find(str(path))
    except (ImportError, ValueError, TypeError, HydraException) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(key, path, f"must be a dotted path: {reason}") from None


def build_class(cls: type, values: Any, key: str) -> Any:
    """Build a class made by `schema` from plain values; raises `ConfigError` with the full key."""
    assert is_dataclass(cls)
    types = {field.name: field.type for field in fields(cls) if field.init}
    known = ", ".join(types)
    if not isinstance(values, dict):
        raise ConfigError(key, values, f"must be a mapping with {known}")
    given = {}
    for name, value in values.items():
        full_key = _joined(key, name)
        if name not in types:
            raise ConfigError(full_key, value, f"unknown key, known are {known}")
        if value == MISSING:
            raise ConfigError(full_key, value, "must be given")
        if "${" in str(value):
            raise ConfigError(full_key, value, "must be a value, not an interpolation")
        variant = any(map(is_schema, (types[name], *get_args(types[name]))))
        if (variant or types[name] is Any) and isinstance(value, dict) and TARGET in value:
            given[name] = _build_values(value, full_key)
        elif isinstance(value, dict) and value and all(map(_is_variant, value.values())):
            given[name] = {
                entry: _build_values(node, f"{full_key}.{entry}") for entry, node in value.items()
            }
        elif types[name] is Any and value is not None:
            raise ConfigError(full_key, value, A_VARIANT)
        else:
            given[name] = value
    try:
        return cls(**given)
    except ConfigError as error:
        raise ConfigError(_joined(key, error.key), error.value, error.allowed) from None


def _is_variant(node: Any) -> bool:
    return isinstance(node, dict) and TARGET in node


def _joined(key: str, name: object) -> str:
    """Return the full key; without a name it is the class as a whole that is wrong."""
    return ".".join(filter(None, (key, str(name))))
