"""What a finished experiment shows: statistics, claims, figures and the report, from its folder."""

from pathlib import Path

from rich.console import Console

from analysis.summarize import summarize
from analysis.tables import print_tables


def comparison(folder: Path, console: Console, *, draw: bool) -> None:
    """Print the tables of a `compare` run; with `draw`, first make everything they come from."""
    if draw:
        # Imported here: a run that is only shown again does not wait for the drawing library.
        from analysis.figures import draw as draw_figures  # noqa: PLC0415
        from analysis.report import write  # noqa: PLC0415

        summarize(folder)
        draw_figures(folder)
        write(folder)
    print_tables(folder, console)


def numbers(folder: Path, console: Console, *, draw: bool) -> None:
    """Print the tables of a `compare` run without drawing anything."""
    if draw:
        summarize(folder)
    print_tables(folder, console)
