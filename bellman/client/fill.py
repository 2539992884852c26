"""Writes the word budget into a request: at a placeholder in its texts, and as a token limit."""

from collections.abc import Mapping
from typing import Any

TEXTS = ("messages", "prompt", "input", "instructions")
"""Arguments of the SDK's calls that hold what the model reads."""
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def with_words(request: Mapping[str, Any], words: int, placeholder: str) -> dict[str, Any]:
    """Return the request with the number in place of `placeholder`; the given one is untouched.

    Strings are looked for in lists, tuples and dicts, at any depth.
    """
    return {
        name: _replaced(value, placeholder, str(words)) if name in TEXTS else value
        for name, value in request.items()
    }


def with_token_limit(request: Mapping[str, Any], name: str, tokens: int) -> dict[str, Any]:
    """Return the request with a limit of its answer's tokens, unless it names one itself."""
    return {**({} if any(map(request.__contains__, LIMITS)) else {name: tokens}), **request}


def _replaced(value: Any, placeholder: str, words: str) -> Any:
    if isinstance(value, str):
        return value.replace(placeholder, words)
    if isinstance(value, list | tuple):
        return [_replaced(entry, placeholder, words) for entry in value]
    if isinstance(value, dict):
        return {key: _replaced(entry, placeholder, words) for key, entry in value.items()}
    return value
