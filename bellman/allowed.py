"""What a field of a schema allows, in words: for the message when something else was given."""

import types
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

KINDS = {float: "a finite number", int: "a whole number", str: "text", bool: "true or false"}


def in_words(cls: type, place: Sequence[int | str], *, of_its_kind: bool = False) -> str:
    """Return what may stand at a place of a dataclass: `must be a whole number, 1 or more`.

    `place` is a field's name, then indices and keys into it. `of_its_kind` says only the range:
    that the value has the right type is then known.
    """
    return f"must be {_allowed(_type_at(cls, place), of_its_kind)}"


def known_in_words(cls: type, place: Sequence[int | str]) -> str:
    """Return the names of a dataclass, or of the one at a place in it: `known are a, b`."""
    bare, _ = without_null(_type_at(cls, place))
    return f"known are {_names(bare)}"


def _type_at(cls: type, place: Sequence[int | str]) -> Any:
    found: Any = cls
    for step in place:
        found = _entry(found, step)
    return found


def _names(cls: Any) -> str:
    return ", ".join(field.name for field in fields(cls) if field.init)


def _entry(annotation: Any, step: int | str) -> Any:
    """Return the type of what `step` leads to: a field, an entry of a list or of a mapping."""
    bare, _ = without_null(annotation)
    if get_origin(bare) is Annotated:
        bare = get_args(bare)[0]
    if is_dataclass(bare) and isinstance(bare, type):
        return get_type_hints(bare, include_extras=True)[str(step)]
    return get_args(bare)[-1] if get_args(bare) else Any


def _allowed(annotation: Any, of_its_kind: bool = False) -> str:
    bare, nullable = without_null(annotation)
    metadata: tuple[Any, ...] = ()
    if get_origin(bare) is Annotated:
        bare, *entries = get_args(bare)
        metadata = tuple(rule for entry in entries for rule in entry.metadata)
    words = ", ".join(filter(None, ["" if of_its_kind else _kind(bare), _range(metadata)]))
    return f"{words}, or null" if nullable else words


def _kind(bare: Any) -> str:
    origin = get_origin(bare)
    if origin is Literal:
        *others, last = map(str, get_args(bare))
        return (
            f"{others[0]} or {last}" if len(others) == 1 else f"one of {', '.join([*others, last])}"
        )
    if origin is list:
        (entry,) = get_args(bare)
        return "a list" if entry is Any else f"a list, each {_allowed(entry)}"
    if origin is dict:
        return "a mapping"
    if is_dataclass(bare):
        return f"a mapping with {_names(bare)}"
    return KINDS.get(bare, f"a {getattr(bare, '__name__', bare)}")


def _range(metadata: Sequence[Any]) -> str:
    bounds = {
        name: getattr(rule, name)
        for rule in metadata
        for name in ("gt", "ge", "lt", "le", "min_length")
        if hasattr(rule, name)
    }
    if "min_length" in bounds:
        return "not empty"
    low = bounds.get("gt", bounds.get("ge"))
    high = bounds.get("lt", bounds.get("le"))
    if low is not None and high is not None:
        opening = "(" if "gt" in bounds else "["
        return f"in {opening}{low:g}, {high:g}{')' if 'lt' in bounds else ']'}"
    if low is not None:
        return f"greater than {low:g}" if "gt" in bounds else f"{low:g} or more"
    if high is not None:
        return f"less than {high:g}" if "lt" in bounds else f"at most {high:g}"
    return ""


def without_null(annotation: Any) -> tuple[Any, bool]:
    """Return the type without `| None`, and whether it had it."""
    if get_origin(annotation) in (Union, types.UnionType):
        others = [entry for entry in get_args(annotation) if entry is not types.NoneType]
        if len(others) == 1:
            return others[0], True
    return annotation, False
