"""What a finished grid shows: each claim at each point, as a table and as maps."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from analysis import read, rows
from analysis.grid.results import RESULTS, write_results
from analysis.plain import NOT_MEASURED, add_row
from analysis.prefix_caching import in_words

SHOWN = 40
"""Points that the terminal shows; grid.csv has them all."""


def grid(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print the points; with `make`, first write grid.json, grid.csv and, by `draw`, figures."""
    found = write_results(folder) if make else read.json_file(folder / RESULTS, {})
    if make and draw:
        # Imported here: a run that is only shown again does not wait for the drawing library.
        from analysis.figures import grid_map, style  # noqa: PLC0415

        target = style.begin(folder)
        for name, figure in grid_map.draw(found):
            style.save(figure, target, name)
    for point in found["points"]:
        for reason in point["invalid_reasons"][:1]:
            console.print(f"invalid: {place(point)}: {reason}", style="bold red", markup=False)
    console.print(in_words(found.get("prefix_caching")), markup=False)
    console.print(points_table(found))
    left = len(found["points"]) - SHOWN
    if left > 0:
        console.print(f"and {left} more points: {folder / 'grid.csv'}", markup=False)
    console.print(
        f"records, figures, grid.csv and grid.json: {folder}", markup=False, soft_wrap=True
    )


def place(point: dict[str, Any]) -> str:
    """Return where a point is: `arrivals.overload=1.2 ...`."""
    return " ".join(f"{name}={text(value)}" for name, value in point["axes"].items())


def text(value: Any) -> str:
    """Return an axis' value as text."""
    return value if isinstance(value, str) else json.dumps(value)


def points_table(found: dict[str, Any]) -> Table:
    """Build the table: a row a point and treatment, a column an axis and a claim."""
    table = Table(title=f"grid ({found['source']})", title_justify="left")
    names = list(dict.fromkeys(c["claim"] for p in found["points"] for c in p["claims"]))
    for axis in found["axes"]:
        table.add_column(axis.replace(".", ".\n"), justify="right")
    for name in ["treatment", *names]:
        table.add_column(name, overflow="fold")
    for point in found["points"][:SHOWN]:
        where = [text(point["axes"].get(axis)) for axis in found["axes"]]
        for treatment in dict.fromkeys(claim["treatment"] for claim in point["claims"]):
            cells = {
                claim["claim"]: f"{rows.estimate(claim)}\n{claim['verdict']}"
                for claim in point["claims"]
                if claim["treatment"] == treatment
            }
            values = [cells.get(name, NOT_MEASURED) for name in names]
            add_row(table, *where, treatment, *values)
            where = ["" for _ in where]
    return table
