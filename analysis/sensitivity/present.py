"""What a finished sensitivity study shows: every arm over each grid, as tables and lines."""

from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from analysis import read
from analysis.grid.points import print_invalid, text
from analysis.plain import add_row, last_part, plain_table
from analysis.prefix_caching import in_words
from analysis.sensitivity.quantities import QUANTITIES
from analysis.sensitivity.results import RESULTS, write_results

Values = dict[str, Any]


def sensitivity(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print a table a grid; with `make`, first write sensitivity.json and, by `draw`, figures."""
    found = write_results(folder) if make else read.json_file(folder / RESULTS, {})
    if make and draw:
        # Imported here: a run that is only shown again does not wait for the drawing library.
        from analysis.figures import sensitivity as figures  # noqa: PLC0415
        from analysis.figures import style  # noqa: PLC0415

        target = style.begin(folder)
        for name, figure in figures.draw(found):
            style.save(figure, target, name)
    print_invalid(found["points"], console)
    console.print(in_words(found.get("prefix_caching")), markup=False)
    for name in found["grids"]:
        console.print(grid_table(found, name))
    console.print(f"records, figures and {RESULTS}: {folder}", markup=False, soft_wrap=True)


def places(axes: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return every combination of a grid's axes."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def arms_at(found: Values, axes: dict[str, Any]) -> list[Values]:
    """Return the arms at a point; none where it was not run."""
    at = (point["arms"] for point in found["points"] if point["axes"] == axes)
    arms: list[Values] = next(at, [])
    return arms


def grid_table(found: Values, name: str) -> Table:
    """Build the table of a grid: a row a point and arm, a column a quantity."""
    axes = found["grids"][name]
    shown = [QUANTITIES[quantity] for quantity in found["quantities"]]
    drawn = [key for key, values in axes.items() if len(values) > 1]
    columns = [*map(last_part, drawn), "arm", *(quantity.label for quantity in shown)]
    table = plain_table(f"{name} ({found['source']})", columns, left=("arm",))
    for place in places(axes):
        where = [text(place[key]) for key in drawn]
        for arm in arms_at(found, place):
            cells = [
                quantity.text(arm[key])
                for key, quantity in zip(found["quantities"], shown, strict=True)
            ]
            add_row(table, *where, arm["arm"], *cells)
            where = ["" for _ in where]
    return table
