"""A flat record as a line of JSON."""

from dataclasses import fields
from typing import Any

import msgspec

from bellman.foreign_text import whole_characters

ENCODER = msgspec.json.Encoder()


def json_line(record: Any) -> bytes:
    """Return a dataclass as JSON, ending its line.

    NaN and the infinities are null: nothing was measured. Half of a character is U+FFFD.
    """
    try:
        return ENCODER.encode(record) + b"\n"
    except UnicodeEncodeError:
        values = {field.name: getattr(record, field.name) for field in fields(record)}
        whole = {n: whole_characters(v) if isinstance(v, str) else v for n, v in values.items()}
        return ENCODER.encode(whole) + b"\n"
