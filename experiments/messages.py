"""Configuration errors of Hydra and OmegaConf in one line: key, value, what is allowed."""

import re
from collections.abc import Sequence
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

CONF = Path(__file__).parent.parent / "conf"


def one_line(error: BaseException, overrides: Sequence[str] = ()) -> str:
    """Return a configuration error in one line.

    `overrides` are those of the command; for a wrong key they tell which keys there are, and one
    that gives a group's variant by a dot is the mistake, whatever came of it.
    """
    for override in overrides:
        variant = _variant_by_dot(override)
        if variant is not None:
            return variant
    unknown = re.match(r"Could not override '([\w.@/]+)'", str(error))
    if unknown is not None:
        return _unknown_key(unknown.group(1), overrides)
    option = re.match(r"In '[^']*': Could not (?:load|find) '([\w/]+)/([^'/]+)'", str(error))
    if option is not None:
        return _unknown_option(option.group(1), option.group(2), overrides)
    text = str(error)
    if isinstance(error, OverrideParseException):
        text = f"{error.override}: {text.splitlines()[0]}; give key=value"
    # OmegaConf appends lines for programmers.
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not re.match(r"\s*(full_key|object_type|reference_type)[:=]", line)
    ]
    return " ".join(lines)


def _variant_by_dot(override: str) -> str | None:
    """Say how to choose a group's variant, where `engine.bank=x` stands for `engine/bank=x`."""
    key, _, value = override.partition("=")
    group = key.replace(".", "/")
    is_name = re.fullmatch(r"[\w-]+", value) and value != "null"
    if "." not in key or not (CONF / group).is_dir() or not is_name:
        return None
    known = ", ".join(sorted(path.stem for path in (CONF / group).glob("*.yaml")))
    return f"{override}: a variant is chosen by {group}=..., known are {known}"


def _unknown_option(group: str, name: str, overrides: Sequence[str]) -> str:
    given = next((text for text in overrides if text.startswith(f"{group}=")), f"{group}={name}")
    known = ", ".join(sorted(path.stem for path in (CONF / group).glob("*.yaml")))
    return f"{given}: {name} must be one of {known}"


def _unknown_key(key: str, overrides: Sequence[str]) -> str:
    given = next((text for text in overrides if text.split("=", 1)[0] == key), key)
    parent = key.rpartition(".")[0]
    node = _without(key, overrides)
    if parent and node is not None:
        node = OmegaConf.select(node, parent)
    known = ""
    if isinstance(node, DictConfig):
        names = [str(name) for name in node if name not in {"_target_", "hydra"}]
        known = f", known are {', '.join(names)}"
    return f"{given}: unknown key{' of ' + parent if parent else ''}{known}"


def _without(key: str, overrides: Sequence[str]) -> DictConfig | None:
    """Compose the configuration without the wrong key; None where that fails too."""
    others = [text for text in overrides if text.split("=", 1)[0] != key and "=" in text]
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return compose("config", overrides=others)
    except (HydraException, OmegaConfBaseException):
        return None
