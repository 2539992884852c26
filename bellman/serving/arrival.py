"""What the door may know of a generation request: its tokens, as far as the body tells."""

import json
import math
from typing import Any

from bellman.admission.base import Arrival
from bellman.sensing.numbers import LARGEST

CHARACTERS_PER_TOKEN = 4
"""Of English text, about (OpenAI's rule of thumb): no tokenizer is at hand at the door."""
LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens")
"""What the servers' interfaces call the largest number of output tokens."""


def arrival_of(body: bytes) -> Arrival:
    """Return the tokens of a request's JSON body: the prompt's estimated, the answer's as asked.

    What cannot be read is None: a request at fault is the server's to refuse.
    """
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        return Arrival()
    if not isinstance(values, dict):
        return Arrival()
    parameters = values.get("parameters")  # of TGI's own interface
    entries = {**parameters, **values} if isinstance(parameters, dict) else values
    asked = (entries.get(name) for name in LIMITS)
    limits = [limit for limit in asked if type(limit) is int and 0 < limit <= LARGEST]
    characters = sum(_characters(values.get(name)) for name in ("messages", "prompt", "input"))
    characters += _characters(values.get("inputs")) + _characters(values.get("text"))
    return Arrival(math.ceil(characters / CHARACTERS_PER_TOKEN), limits[0] if limits else None)


def _characters(value: Any) -> int:
    """Count the characters of all texts in a prompt, whatever its form."""
    waiting, characters = [value], 0
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            characters += len(part)
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += [part.get("content"), part.get("text")]
    return characters
