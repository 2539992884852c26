"""What a finished check of the installation shows: which parts work, and no claim."""

from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis import read
from analysis.frames import load_run
from analysis.kick_the_tires.checks import Check, checks
from analysis.plain import add_row, plain_table
from analysis.summarize import summarize
from bellman.records import write_json

CHECKS = "checks.json"


def kick_the_tires(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print which parts work; with `make`, first make everything that comes from the records."""
    if make:
        run = load_run(folder)
        summarize(run)
        if draw:
            # Imported here: a run that is only shown again does not wait for the drawing library.
            from analysis.figures import draw as draw_figures  # noqa: PLC0415
            from analysis.report import write  # noqa: PLC0415

            draw_figures(run)
            write(folder)
        write_json([asdict(check) for check in checks(folder)], folder / CHECKS)
    found = [Check(**entry) for entry in read.json_file(folder / CHECKS, [])]
    summary = read.json_file(folder / "summary.json", {})
    console.print(checks_table(found, str(summary["source"])))
    broken = [check.part for check in found if not check.works]
    if broken:
        verdict = f"The installation does not work: {', '.join(broken)}."
        console.print(verdict, style="bold red", markup=False)
    else:
        verdict = "The installation works, as far as simulated runs go."
        console.print(verdict, style="bold green", markup=False)
    console.print(
        "The numbers of this run are no results: it is too short. For results: "
        "python run.py experiment=summarize_congested",
        markup=False,
    )
    console.print(f"records, figures, report: {folder}", markup=False, soft_wrap=True)


def checks_table(found: list[Check], source: str) -> Table:
    """Build the table: a row a part."""
    names = ("part", "seen", "works")
    table = plain_table(f"check of the installation ({source})", names, left=names)
    for check in found:
        style = "green" if check.works else "bold red"
        add_row(table, check.part, check.seen, Text("yes" if check.works else "NO", style=style))
    return table
