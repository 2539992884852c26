"""What configuration classes are made of: `@schema`, and types whose ranges stand at the field.

    @schema
    class Threshold:
        limit: Whole

is a frozen dataclass that checks itself, from a YAML file as from Python: types, ranges, choices
and names by what its fields declare; rules between fields, in `__post_init__`, by `require`.
"""

from collections.abc import Callable
from dataclasses import field, fields
from functools import wraps
from typing import Annotated, Any, TypeVar, dataclass_transform

import pydantic
from pydantic import ConfigDict, Field

from bellman.allowed import in_words, known_in_words
from bellman.errors import ConfigError

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(gt=0, le=1)]
"""A part of a whole that is never nothing."""
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
"""A whole number, 0 among them."""
Name = Annotated[str, Field(min_length=1)]
Entry = TypeVar("Entry")
OneOrMore = Annotated[list[Entry], Field(min_length=1)]

RULES = ConfigDict(
    extra="forbid",
    allow_inf_nan=False,
    # `corpus.name=2024` is read as a number before anyone knows that it is a name.
    coerce_numbers_to_str=True,
    arbitrary_types_allowed=True,
)
OUT_OF_RANGE = (
    "greater_than",
    "greater_than_equal",
    "less_than",
    "less_than_equal",
)
"""What pydantic calls a value that has the right type."""
MISSING = "???"
"""Stands in YAML for what must be given."""

Class = TypeVar("Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def schema(cls: Class) -> Class:
    """Make a class a frozen dataclass that raises `ConfigError` for values it does not allow.

    The error's key is the field's name, with dots into lists and mappings: where the configuration
    has the class, `bellman.build` knows.
    """
    made: Any = pydantic.dataclasses.dataclass(cls, frozen=True, config=RULES)
    validate: Callable[..., None] = made.__init__
    names = [entry.name for entry in fields(made) if entry.init]

    @wraps(validate)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(names, args, strict=False)) | kwargs
        mistake = None
        try:
            validate(self, *args[len(names) :], **given)
        except pydantic.ValidationError as error:
            mistake = _config_error(made, error)
        for name, value in given.items():
            if _is_slip(value, vars(self).get(name, value)):
                raise ConfigError(name, value, in_words(made, (name,)))
        if mistake is not None:
            raise mistake

    made.__init__ = init
    return made  # type: ignore[no-any-return]


def is_schema(cls: object) -> bool:
    """Return whether a class was made by `schema`."""
    return isinstance(cls, type) and pydantic.dataclasses.is_pydantic_dataclass(cls)


def _config_error(cls: Any, error: pydantic.ValidationError) -> Exception:
    """Return the first mistake; a name that is not known comes before what lacks without it."""
    found = error.errors(include_url=False)
    first = min(found, key=lambda mistake: mistake["type"] != "unexpected_keyword_argument")
    place, kind = first["loc"], first["type"]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, Exception):
        return cause  # of `__post_init__`
    key = ".".join(map(str, place))
    if kind == "unexpected_keyword_argument":
        return ConfigError(key, first["input"], f"unknown key, {known_in_words(cls, place[:-1])}")
    if kind in {"missing", "missing_argument"}:
        return ConfigError(key, MISSING, "must be given")
    return ConfigError(key, first["input"], in_words(cls, place, of_its_kind=kind in OUT_OF_RANGE))


def _is_slip(given: Any, taken: Any) -> bool:
    """Whether pydantic took `true` for 1, or 3.0 for a whole number: nobody means that."""
    if isinstance(given, dict) and isinstance(taken, dict):
        return any(map(_is_slip, given.values(), taken.values()))
    if isinstance(given, list | tuple) and isinstance(taken, list | tuple):
        return any(map(_is_slip, given, taken))
    if isinstance(given, bool):
        return isinstance(taken, int | float) and not isinstance(taken, bool)
    return isinstance(given, float) and isinstance(taken, int)
