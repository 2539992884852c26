"""What a finished grid shows: each claim at each point, as a table and as maps."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from analysis import read, rows
from analysis.grid.points import print_invalid, text
from analysis.grid.results import RESULTS, write_results
from analysis.plain import NOT_MEASURED, add_row, last_part, plain_table
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
    print_invalid(found["points"], console)
    console.print(in_words(found.get("prefix_caching")), markup=False)
    console.print(points_table(found))
    left = len(found["points"]) - SHOWN
    if left > 0:
        console.print(f"and {left} more points: {folder / 'grid.csv'}", markup=False)
    console.print(
        f"records, figures, grid.csv and grid.json: {folder}", markup=False, soft_wrap=True
    )


def points_table(found: dict[str, Any]) -> Table:
    """Build the table: a row a point and treatment, a column an axis and a claim."""
    names = list(dict.fromkeys(c["claim"] for p in found["points"] for c in p["claims"]))
    short = [last_part(axis) for axis in found["axes"]]
    axes = short if len(set(short)) == len(short) else found["axes"]
    words = ["treatment", *names]
    table = plain_table(f"grid ({found['source']})", [*axes, *words], left=words)
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
