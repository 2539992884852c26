"""What a finished fluid study shows: the errors of the model, and both queues over time."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from analysis import read
from analysis.fluid.errors import results
from analysis.frames import load_run
from analysis.plain import add_row, number, percent, plain_table
from analysis.prefix_caching import in_words
from analysis.summarize import jsonable
from bellman.records import write_json

RESULTS = "fluid.json"


def fluid(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print the errors; with `make`, first write fluid.json and, by `draw`, the figure."""
    if make:
        write_json(jsonable(results(folder, load_run(folder))), folder / RESULTS)
    found = read.json_file(folder / RESULTS, {})
    if make and draw:
        # Imported here: a run that is only shown again does not wait for the drawing library.
        from analysis.figures import fluid as figures  # noqa: PLC0415
        from analysis.figures import style  # noqa: PLC0415

        target = style.begin(folder)
        style.save(figures.draw(found), target, "fluid")
    console.print(in_words(found.get("prefix_caching")), markup=False)
    console.print(errors_table(found))
    console.print(
        "error: mean |fluid - simulated| / mean simulated, of the requests in the engine, once a "
        "second; the simulated ones are the mean of the repeats",
        style="dim",
        markup=False,
    )
    console.print(f"records, figure and {RESULTS}: {folder}", markup=False, soft_wrap=True)


def errors_table(found: dict[str, Any]) -> Table:
    """Build the table: a row an arm and phase."""
    names = ("arm", "phase", "simulated", "fluid", "largest", "fluid", "error")
    title = f"requests in the engine, fluid beside {found['source']}"
    table = plain_table(title, names, left=("arm", "phase"))
    for arm in found["arms"]:
        name = arm["arm"]
        for phase, error in arm["errors"].items():
            means = (error["simulated_mean"], error["fluid_mean"])
            largest = (error["largest"], error["fluid_largest"])
            cells = [*map(number, means), *map(number, largest), percent(error["error"])]
            add_row(table, name, phase, *cells)
            name = ""
    return table
