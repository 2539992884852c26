"""Turns a config node with `_target_` into its validated dataclass.

A variant (control law, arrival process, engine, meter...) is one dataclass and one YAML file that
names it. The dataclass is the schema: unknown keys, wrong types and wrong ranges are refused with
the full key, before anything runs.
"""

from dataclasses import fields, is_dataclass
from typing import Any

from hydra.utils import get_class
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from bellman.errors import ConfigError


def build(node: DictConfig, key: str) -> Any:
    """Build the dataclass that `node._target_` names from the node's other entries.

    `key` is the node's place in the configuration, for messages. Raises `ConfigError`.
    """
    values = OmegaConf.to_container(node, resolve=True, throw_on_missing=False)
    assert isinstance(values, dict)
    target = str(values.pop("_target_"))
    cls = get_class(target)
    return build_class(cls, values, key)


def build_class(cls: type, values: dict[Any, Any], key: str) -> Any:
    """Build the dataclass `cls` from plain values, checked against its field types."""
    assert is_dataclass(cls)
    names = [field.name for field in fields(cls) if field.init]
    schema = OmegaConf.structured(cls)
    OmegaConf.set_readonly(schema, False)  # frozen dataclasses come out read-only
    for name, value in values.items():
        if name not in names:
            raise ConfigError(f"{key}.{name}", value, f"unknown key, known are {', '.join(names)}")
        try:
            OmegaConf.update(schema, name, value)
        except OmegaConfBaseException as error:
            message = str(error).splitlines()[0]
            raise ConfigError(f"{key}.{name}", value, message) from None
    missing = sorted(OmegaConf.missing_keys(schema))
    if missing:
        raise ConfigError(f"{key}.{missing[0]}", "???", "must be given")
    return OmegaConf.to_object(schema)
