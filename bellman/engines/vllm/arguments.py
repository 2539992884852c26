"""Command line arguments of a vLLM server from a configuration's entries."""

import json
from collections.abc import Mapping
from typing import Any


def command_line(entries: Mapping[str, Any]) -> list[str]:
    """Return `--name value` for every entry, in order; underscores become dashes.

    true is `--name`, false `--no-name`, null leaves it to vLLM, a list is its values one after the
    other, a mapping is JSON.
    """
    words: list[str] = []
    for key, value in entries.items():
        name = str(key).replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        elif isinstance(value, Mapping):
            words += [f"--{name}", json.dumps(dict(value))]
        elif isinstance(value, list | tuple):
            words += [f"--{name}", *map(str, value)]
        elif value is not None:
            words += [f"--{name}", str(value)]
    return words
