"""The one place that keeps secrets out of what is written or shown.

By name: whatever stands under a key that says key, token, secret, password or authorization. By
value: that value, and those of such environment variables, wherever else they occur, also as a URL
or JSON writes them. By form: the user part of a URL, such parameters of its query, such headers and
arguments, and what follows "Bearer".
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

HIDDEN = "***"
SHORTEST = 6
"""Characters of a value that is looked for elsewhere: shorter ones occur by chance."""
NAMES = {
    *("key", "apikey", "apikeys", "token", "secret", "secrets", "password", "passwords", "passwd"),
    *("passphrase", "authorization", "auth", "credential", "credentials", "bearer", "cookie"),
}
KEYRINGS = {"api", "access", "secret", "private"}
"""Whose `keys` are secrets."""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
SECRET = r"(?:key|token|secret|passw(?:or)?d|passphrase|authorization|credentials?)"
NAME = rf"[\w.\-/+@]*{SECRET}"
PARAMETER = rf"(?:{NAME}|[\w.\-]*(?:auth|sig|signature|pwd))"
HEADER = r"(?:api[-_]?key|access[-_]?key|(?:access|auth|refresh)[-_]token|secret|passw(?:or)?d)"
FORMS = (
    (re.compile(r"(\w://)[^/?#\s\"]*@"), rf"\1{HIDDEN}@"),
    (re.compile(rf"([?&;]{PARAMETER}=)[^&\s#'\"]+", re.I), rf"\1{HIDDEN}"),
    (re.compile(r"(authorization['\"]?:\s*['\"]?)[^'\",}\n]+", re.I), rf"\1{HIDDEN}"),
    (re.compile(r"(\b(?:bearer|basic)\s+)[\w.~+/=\-]{6,}", re.I), rf"\1{HIDDEN}"),
    (re.compile(rf"({HEADER}['\"]?:\s*['\"]?)[^\s'\",}}]+", re.I), rf"\1{HIDDEN}"),
    (re.compile(rf"(--[\w\-]*{SECRET}\s+)[^\s\-]\S*", re.I), rf"\1{HIDDEN}"),
    (
        re.compile(
            rf"((?<![\w.])-*{NAME}=['\"]?)(?![\d.]+(?:\W|$))(?:[^\s:}}'\"]|:(?!\s|$))+", re.I
        ),
        rf"\1{HIDDEN}",
    ),
)
_values: set[str] = set()
"""Known secrets: those of the environment, and of the configurations learnt."""


def is_secret_name(name: str) -> bool:
    """Whether a key holds a secret; `api_key_env` names a variable, `words_per_token` no string."""
    words = [word.lower() for word in WORD.findall(name)]
    holds = not NAMES.isdisjoint(words) or ("keys" in words and not KEYRINGS.isdisjoint(words))
    return holds and words[-1] not in {"env", "file", "path", "column"}


def learn(config: Any) -> None:
    """Remember the secrets of a configuration, so that `conceal` finds them anywhere."""
    _values.update(_of_environment(), _secrets(config))


def learn_command(words: Iterable[str]) -> None:
    """Remember what a command line gives to options like `--api-key`."""
    secret = False
    for word in words:
        value = word
        if word.startswith("--"):
            option, _, value = word.partition("=")
            secret = is_secret_name(option)
        if secret:
            _values.update(_long([value]))


def redact(value: Any, name: str = "") -> Any:
    """Return a copy of nested values without secrets."""
    if isinstance(value, Mapping):
        return {key: redact(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return _arguments([redact(inner, name) for inner in value])
    if not isinstance(value, str):
        return value
    return HIDDEN if value and is_secret_name(name) else conceal(value)


def conceal(text: str) -> str:
    """Return a text without known secrets, and without what has the form of one."""
    text = conceal_values(text)
    for form, hidden in FORMS:
        text = form.sub(hidden, text)
    return text


def conceal_values(text: str) -> str:
    """Return a text without the values of secrets that are known."""
    for secret in sorted(_values, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text


def _arguments(values: list[Any]) -> list[Any]:
    """Hide the word after `--api-key`."""
    pairs = zip(["", *values], values, strict=False)
    return [HIDDEN if _is_flag(before) and isinstance(v, str) else v for before, v in pairs]


def _is_flag(word: Any) -> bool:
    return (
        isinstance(word, str) and word.startswith("--") and "=" not in word and is_secret_name(word)
    )


def _of_environment() -> set[str]:
    return set(_long(value for name, value in os.environ.items() if is_secret_name(name)))


def _secrets(value: Any, name: str = "") -> set[str]:
    if isinstance(value, Mapping):
        return {s for key, inner in value.items() for s in _secrets(inner, str(key))}
    if isinstance(value, list | tuple):
        return {secret for inner in value for secret in _secrets(inner, name)}
    if not isinstance(value, str):
        return set()
    if name.endswith("_env"):  # it names the variable that holds one
        value = os.environ.get(value, "")
    elif not is_secret_name(name):
        return set()
    return set(_long([value]))


def _long(values: Iterable[str]) -> Iterable[str]:
    """Return the values that are long enough, each as it stands in a URL and in JSON, too."""
    for value in values:
        if len(value) >= SHORTEST:
            yield from (value, quote(value, safe=""))
            yield from (json.dumps(value, ensure_ascii=ascii)[1:-1] for ascii in (True, False))


_values.update(_of_environment())
