"""Terminal tables: their one look, numbers as they are read, rows whose text is shown as it is."""

from collections.abc import Collection, Sequence
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

NOT_MEASURED = "n/a"
MANY_COLUMNS = 7
"""More than these stand one character apart."""


def plain_table(title: str | None, columns: Sequence[str], left: Collection[str]) -> Table:
    """Return a table without lines between columns: it must fit a narrow terminal.

    The columns in `left` hold words, the others numbers. No arm's name is broken.
    """
    table = Table(
        title=None if title is None else escape(title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=0 if len(columns) > MANY_COLUMNS else (0, 1, 0, 0),
        show_edge=False,
    )
    for name in columns:
        table.add_column(
            escape(name),
            justify="left" if name in left else "right",
            overflow="fold",
            no_wrap=name == "arm",
        )
    return table


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
