"""Reads the values in a trace: an instant, tokens, ids of a prompt's blocks, a priority."""

import json
import math
from datetime import UTC, datetime
from typing import Any, Literal

SECONDS_PER = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
ISO = "iso"
"""ISO 8601 text, with any number of fractional digits; without a zone it is UTC."""
TimeUnit = Literal["s", "ms", "us", "ns", "iso"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time_s(value: Any, unit: str) -> float:
    """Return an instant in seconds since some epoch; raises ValueError for anything else.

    An instant with a calendar (a timestamp of parquet) is one in every unit.
    """
    if isinstance(value, str) and unit == ISO:
        value = datetime.fromisoformat(value.strip())
    if isinstance(value, datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=UTC)
        return float((value - _EPOCH).total_seconds())
    if unit == ISO:
        raise ValueError
    return _number(value) * SECONDS_PER[unit]


def _number(value: Any) -> float:
    """Return a finite number; a boolean is none, and so is `1_000`, though Python takes them."""
    number = float(value)
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError
    if isinstance(value, bool) or not math.isfinite(number):
        raise ValueError
    return number


def parse_tokens(value: Any) -> int:
    """Return a whole number of tokens, 0 or more; raises ValueError for anything else."""
    tokens = _number(value)
    if not tokens.is_integer() or not 0 <= tokens < 2**31:
        raise ValueError
    return int(tokens)


def parse_hash_ids(value: Any) -> tuple[int, ...]:
    """Return the ids of a prompt's blocks, a list or its JSON text; raises ValueError else."""
    ids = json.loads(value) if isinstance(value, str) else value
    if not isinstance(ids, list):
        raise ValueError
    if not all(type(item) is int and 0 <= item < 2**63 for item in ids):
        raise ValueError
    return tuple(ids)


def parse_priority(value: Any) -> int:
    """Return a priority, a whole number of 32 bits; raises ValueError for anything else."""
    priority = _number(value)
    if not priority.is_integer() or abs(priority) >= 2**31:
        raise ValueError
    return int(priority)
