"""What a finished replay shows: errors by arm, and the distributions that they come from."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from analysis.frames import Run
from analysis.plain import add_row, plain_table
from analysis.plan import read_plan
from analysis.prefix_caching import found_in, in_words
from analysis.replay.errors import Comparison, compare, load
from analysis.summarize import jsonable
from bellman.records import write_json

FIT = "FitCell"


def replay(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print the tables of a replay; with `make`, first make everything they come from."""
    measured, simulated = load(folder)
    comparisons = compare(measured, simulated)
    if make:
        caching = {run.source: found_in(run.episodes) for run in (measured, simulated)}
        rows = [jsonable(asdict(found)) | {"prefix_caching": caching} for found in comparisons]
        write_json(rows, folder / "validation.json")
    if make and draw:
        draw_figure(measured, simulated, folder)
    for run in (measured, simulated):
        console.print(f"{run.source}: {in_words(found_in(run.episodes))}", markup=False)
    show(comparisons, console)
    console.print(fit_line(folder), markup=False)
    for run in (measured, simulated):
        if run.invalid_text:
            console.print(f"INVALID RUN ({run.source}): {run.invalid_text}", style="bold red")
    console.print(f"records, figure and validation.json: {folder}", markup=False, soft_wrap=True)


def draw_figure(measured: Run, simulated: Run, folder: Path) -> None:
    """Draw the latencies of both sides."""
    # Imported here: a run that is only shown again does not wait for the drawing library.
    from analysis.figures import replay_latency, style  # noqa: PLC0415

    target = style.begin(folder)
    style.save(replay_latency.draw(measured, simulated), target, "replay_latency")


def show(comparisons: Sequence[Comparison], console: Console) -> None:
    """Print what was compared."""
    names = ("arm", "metric", "unit", "measured", "simulated", "error", "target")
    words = ("arm", "metric", "unit", "target")
    table = plain_table("the simulated engine against the real one", names, left=words)
    for found in comparisons:
        values = [number(found.measured), number(found.simulated), percent(found.error)]
        add_row(table, found.arm, found.metric, found.unit, *values, found.target)
    console.print(table)


def fit_line(folder: Path) -> str:
    """Return how well the step time fits its batches, and how the machine's speed changed."""
    fit = fitted(folder)
    if fit is None:
        return "step time: not fitted, the measurement did not end"
    batches, drift = fit["batches"], fit["drift"]
    drifted = f"{min(drift):+.1%} to {max(drift):+.1%} (drift and noise)"
    found = [abs(batch[name]) for batch in batches for name in ("first_error", "last_error")]
    front_end = fit.get("front_end")
    delay = "" if front_end is None else f", front end {front_end['mean_ms']:.3g} ms"
    return (
        f"step time{delay}, fitted to {len(batches)} batches on the idle engine, none of these "
        f"episodes: error mean {sum(found) / len(found):.1%}, largest {max(found):.1%}; batches "
        f"after the episodes against before them: {drifted}"
    )


def fitted(folder: Path) -> dict[str, Any] | None:
    """Return what the fit's cell says; None where it is not done."""
    return next((cell.content for cell in read_plan(folder) if cell.kind == FIT), None)


def number(value: float | None) -> str:
    """Return a value with three digits, or n/a."""
    return "n/a" if value is None else f"{value:.3g}"


def percent(value: float | None) -> str:
    """Return a signed percentage, or n/a."""
    return "n/a" if value is None else f"{value:+.1%}"
