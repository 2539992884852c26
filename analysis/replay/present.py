"""What a finished replay shows: errors by arm, and the distributions that they come from."""

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from analysis.plain import add_row
from analysis.replay.errors import compare, load
from analysis.summarize import jsonable
from bellman.records import write_json


def replay(folder: Path, console: Console, *, draw: bool) -> None:
    """Print the tables of a replay; with `draw`, first write validation.json and the figure."""
    measured, simulated = load(folder)
    comparisons = compare(measured, simulated)
    if draw:
        # Imported here: a run that is only shown again does not wait for the drawing library.
        from analysis.figures import replay_latency, style  # noqa: PLC0415

        write_json([jsonable(asdict(found)) for found in comparisons], folder / "validation.json")
        target = folder / "figures"
        target.mkdir(exist_ok=True)
        style.use_style()
        style.save(replay_latency.draw(measured, simulated), target, "replay_latency")
    table = Table(title="the simulated engine against the real one", title_justify="left")
    for name in ("arm", "metric", "unit", "measured", "simulated", "error", "target"):
        table.add_column(name, justify="right" if name in NUMBERS else "left")
    for found in comparisons:
        values = [number(found.measured), number(found.simulated), percent(found.error)]
        add_row(table, found.arm, found.metric, found.unit, *values, found.target)
    console.print(table)
    console.print(fit_line(folder))
    for run in (measured, simulated):
        if run.invalid_text:
            console.print(
                f"INVALID RUN ({run.source}): {run.invalid_text}", style="bold red", markup=False
            )
    console.print(f"records, figure and validation.json: {folder}", markup=False, soft_wrap=True)


NUMBERS = ("measured", "simulated", "error")


def fit_line(folder: Path) -> str:
    """Return how well the step time fits its batches, and how the machine's speed changed."""
    fit = json.loads((folder / "fit.json").read_text())
    batches, drift = fit["batches"], fit.get("drift")
    drifted = f"{min(drift):+.1%} to {max(drift):+.1%} (drift and noise)" if drift else "n/a"
    found = [abs(batch[name]) for batch in batches for name in ("first_error", "last_error")]
    return (
        f"step time fitted to {len(batches)} batches on the idle engine, none of these episodes: "
        f"error mean {sum(found) / len(found):.1%}, largest {max(found):.1%}; batches after the "
        f"episodes against before them: {drifted}"
    )


def number(value: float | None) -> str:
    """Return a value with three digits, or n/a."""
    return "n/a" if value is None else f"{value:.3g}"


def percent(value: float | None) -> str:
    """Return a signed percentage, or n/a."""
    return "n/a" if value is None else f"{value:+.1%}"
