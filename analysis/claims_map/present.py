"""What a finished claims map shows: how often each reading holds, all three together, and why."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from analysis import read
from analysis.claims_map import why
from analysis.claims_map.results import ENERGY, LATENCY, RESULTS, SERVED, write_results
from analysis.grid.points import print_invalid
from analysis.plain import add_row, plain_table
from analysis.prefix_caching import in_words
from bellman.records import write_text

WHY = "why.txt"
HEADERS = {"end-to-end latency": "latency", "requests served": "served"}


def claims_map(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print the counts and why; with `make`, first write both and, by `draw`, the figures."""
    found = write_results(folder) if make else read.json_file(folder / RESULTS, {})
    if make:
        write_text(why.paragraph(found) + "\n", folder / WHY)
    if make and draw:
        # Imported here: a run that is only shown again does not wait for the drawing library.
        from analysis.figures import claims_map as maps  # noqa: PLC0415
        from analysis.figures import style  # noqa: PLC0415

        target = style.begin(folder)
        for name, figure in maps.draw(found):
            style.save(figure, target, name)
    print_invalid(found["points"], console)
    console.print(in_words(found.get("prefix_caching")), markup=False)
    console.print(counts_table(found))
    console.print(why.paragraph(found), markup=False)
    console.print(f"records, figures, {RESULTS} and {WHY}: {folder}", markup=False, soft_wrap=True)


def counts_table(found: dict[str, Any]) -> Table:
    """Build the table: a row a grid, how many of its points reach each figure."""
    points = found["points"]
    energy = why.names(points, ENERGY)
    first = [names[0] for unit in (LATENCY, SERVED) if (names := why.names(points, unit))]
    headers = [HEADERS[name] for name in first]
    headers += [f"energy,\n{why.place(name)}".replace("in the ", "") for name in energy]
    table = plain_table(
        f"points where a claim holds ({found['source']})",
        ["grid", "points", *headers, "all\nthree"],
        left=("grid",),
    )
    for name, axes in found["grids"].items():
        own = [point for point in points if set(point["axes"]) == set(axes)]
        counts = [why.count(own, reading) for reading in [*first, *energy]]
        all_three = sum(bool(why.at_once(point)) for point in own)
        add_row(table, name, str(len(own)), *map(str, [*counts, all_three]))
    return table
