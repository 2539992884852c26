"""The points of a grid in words: where each is, and what makes one invalid."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console

Values = dict[str, Any]


def place(point: Values) -> str:
    """Return where a point is: `arrivals.overload=1.2 ...`."""
    return " ".join(f"{name}={text(value)}" for name, value in point["axes"].items())


def text(value: Any) -> str:
    """Return an axis' value as text."""
    return value if isinstance(value, str) else json.dumps(value)


def print_invalid(points: Sequence[Values], console: Console) -> None:
    """Print a line for each point whose load was not what it should be: its first reason."""
    for point in points:
        for reason in point["invalid_reasons"][:1]:
            console.print(f"invalid: {place(point)}: {reason}", style="bold red", markup=False)
