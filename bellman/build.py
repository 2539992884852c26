"""Turns a config node with `_target_` into its validated dataclass.

A variant (control law, arrival process, engine, meter...) is one dataclass and one YAML file that
names it. The dataclass is the schema: unknown keys, wrong types and wrong ranges are refused with
the full key, before anything runs. An entry that has a `_target_` of its own is built first; the
field that takes it is typed `Any`.
"""

from dataclasses import fields, is_dataclass
from typing import Any

from hydra.utils import get_class
from omegaconf import Container, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from bellman.errors import ConfigError

TARGET = "_target_"


def build(node: DictConfig, key: str) -> Any:
    """Build the dataclass that `node._target_` names from the node's other entries.

    `key` is the node's place in the configuration, for messages. Raises `ConfigError`.
    """
    values = OmegaConf.to_container(node, resolve=True)
    assert isinstance(values, dict)
    return _build_values(values, key)


def _build_values(values: dict[Any, Any], key: str) -> Any:
    target = str(values[TARGET])
    others = {name: value for name, value in values.items() if name != TARGET}
    return build_class(get_class(target), others, key)


def build_class(cls: type, values: dict[Any, Any], key: str) -> Any:
    """Build the dataclass `cls` from plain values, checked against its field types."""
    assert is_dataclass(cls)
    names = [field.name for field in fields(cls) if field.init]
    schema = OmegaConf.structured(cls)
    OmegaConf.set_readonly(schema, False)  # frozen dataclasses come out read-only
    nested = {}
    for name, value in values.items():
        full_key = f"{key}.{name}" if key else str(name)
        if name not in names:
            raise ConfigError(full_key, value, f"unknown key, known are {', '.join(names)}")
        if isinstance(value, dict) and TARGET in value:
            nested[name] = _build_values(value, full_key)
            continue
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
    return cls(**plain, **nested)
