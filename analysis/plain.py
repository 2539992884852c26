"""Rows of terminal tables whose text is shown as it is: rich would take `[/x]` in it for markup."""

from typing import Any

from rich.table import Table
from rich.text import Text


def add_row(table: Table, *cells: str | Text, **options: Any) -> None:
    """Add a row; names of models and arms may come from a folder that somebody sent."""
    table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells), **options)
