"""Points of a grid: the configuration with some of its entries changed."""

import itertools
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from bellman.errors import ConfigError
from bellman.settings import Settings, read_settings
from experiments.messages import CONF


@dataclass(frozen=True)
class Point:
    """Where a point stands, and what it changes."""

    axes: Mapping[str, Any]
    """Values by the names of the axes."""
    changes: Mapping[str, Any]
    """Entries of the configuration by dotted keys; `group/sub` chooses an option of a group."""

    def settings(self, base: Settings) -> Settings:
        """Return the settings at the point; raises `ConfigError`."""
        config = deepcopy(base.config)
        for key, value in self.changes.items():
            change(config, key, value)
        return read_settings(config)


def product(axes: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Return every combination of the axes' values, the last axis fastest."""
    combined = itertools.product(*axes.values())
    found = [dict(zip(axes, values, strict=True)) for values in combined]
    return [Point(values, values) for values in found]


def change(config: DictConfig, key: str, value: Any) -> None:
    """Change one entry of a composed configuration, which must have it; raises `ConfigError`."""
    if "/" in key:
        dotted = key.replace("/", ".")
        if OmegaConf.select(config, dotted) is None:
            raise ConfigError(f"study.axes.{key}", value, "names no group of this configuration")
        OmegaConf.update(config, dotted, option(key, str(value)), merge=False, force_add=True)
        return
    parent, _, last = key.rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    if not isinstance(node, DictConfig) or last not in node:
        known = ", ".join(map(str, node)) if isinstance(node, DictConfig) else "none"
        raise ConfigError(f"study.axes.{key}", value, f"unknown entry, known here are {known}")
    try:
        OmegaConf.update(config, key, value)
    except OmegaConfBaseException as error:
        raise ConfigError(f"study.axes.{key}", value, str(error).splitlines()[0]) from None


def option(group: str, name: str) -> DictConfig:
    """Return an option of a config group as its file has it; raises `ConfigError`."""
    known = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
    if name not in known:
        raise ConfigError(f"study.axes.{group}", name, f"must be one of {', '.join(known)}")
    node = OmegaConf.load(CONF / group / f"{name}.yaml")
    assert isinstance(node, DictConfig)
    if "defaults" in node:
        raise ConfigError(
            f"study.axes.{group}", name, "is made of other options: sweep it by a multirun instead"
        )
    return node
