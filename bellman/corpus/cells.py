"""What a cell of a data set says as text: a document, a summary, or an id."""

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from bellman.errors import RunError
from bellman.row_files.text import shown


def cell_text(value: Any, place: str, column: str) -> str | None:
    """Return a text as it is, a whole number's digits, or None for null.

    Raises `RunError` with place and column for everything else.
    """
    if value is None:
        return None
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError as error:
            raise _refused(value, place, column, f"bytes, not UTF-8 at {error.start}") from None
    if isinstance(value, int) and not isinstance(value, bool):
        return _digits(value, place, column)
    if not isinstance(value, str):
        raise _refused(value, place, column, type(value).__name__)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"half a surrogate pair at character {error.start}"
        raise _refused(value, place, column, half) from None
    return value


def cell_id(value: Any, place: str, column: str) -> str:
    """Return an id: a text, a number, an instant, or a UUID; raises `RunError` for others."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID | Decimal) or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    text = cell_text(value, place, column)
    if not text:
        raise RunError(f"{place}: {column} is {'null' if text is None else 'empty'}, must be an id")
    return text


def _digits(value: int, place: str, column: str) -> str:
    try:
        return str(value)
    except ValueError:
        raise _refused(value, place, column, "a number of too many digits") from None


def _refused(value: Any, place: str, column: str, kind: str) -> RunError:
    seen = "" if isinstance(value, int) and not isinstance(value, bool) else f": {shown(value)}"
    return RunError(f"{place}: {column} must be text or null, not {kind}{seen}")
