"""Text of terminal tables: numbers as they are read, and rows whose text is shown as it is."""

from typing import Any

from rich.table import Table
from rich.text import Text

NOT_MEASURED = "n/a"


def add_row(table: Table, *cells: str | Text, **options: Any) -> None:
    """Add a row; names of models and arms may come from a folder that somebody sent."""
    table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def percent(share: float | None) -> str:
    """Return a share as a percentage with one decimal."""
    return NOT_MEASURED if share is None else f"{100 * share:.1f} %"


def seconds(value: float | str | None) -> str:
    """Return seconds with three digits; "inf" is of a percentile among lost requests."""
    if value is None:
        return NOT_MEASURED
    return "inf" if value == "inf" else f"{float(value):.3g} s"


def number(value: float | None) -> str:
    """Return a number with three digits, or all of a whole part."""
    return NOT_MEASURED if value is None else f"{value:.4g}"


def last_part(key: str) -> str:
    """Return the last part of an entry's key: what a column or an axis is called."""
    return key.replace("/", ".").rpartition(".")[2]
