"""What a finished validation shows: errors by profile, row by row, and with other prompts."""

import math
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from analysis import read
from analysis.plain import NOT_MEASURED, add_row, plain_table
from analysis.plan import read_plan
from analysis.summarize import jsonable
from analysis.validation.errors import (
    AS_IT_IS,
    METRICS,
    SPLITS,
    STEADY_STATES,
    load,
    summarize,
    verdict,
)
from bellman.errors import RunError
from bellman.records import write_json, write_parquet


def validation(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print the tables of a validation; with `make`, first make everything they come from."""
    if make:
        write_parquet(gathered(folder), folder / STEADY_STATES)
    frame = load(folder)
    about = read.json_file(folder / "study.json", {})
    if make:
        write_json(jsonable(results(frame)), folder / "validation.json")
    if make and draw:
        draw_figures(frame, folder)
    found = results(frame)
    for split in dict.fromkeys((*SPLITS, *(str(result["split"]) for result in found))):
        of_split = [result for result in found if result["split"] == split]
        if of_split:
            console.print(summary_table(of_split, split))
    console.print(rows_table(frame))
    console.print(prompts_table(frame))
    if about["without_profile"]:
        console.print(
            f"rows without a profile: {', '.join(about['without_profile'])}", markup=False
        )
    console.print(
        f"measured rows: {about['rows']}; the other side is simulated. The prompt lengths "
        "of those rows are not published: they are assumed, as fitted on the fitted rows.",
        markup=False,
    )
    console.print(f"records, figures and validation.json: {folder}", markup=False, soft_wrap=True)


def gathered(folder: Path) -> pa.Table:
    """Return the records of all cells that are done; raises `RunError` where none is."""
    contents = [cell.content for cell in read_plan(folder)]
    records = [record for content in contents if content for record in content["records"]]
    if not records:
        raise RunError(f"{folder}: no row was simulated yet")
    return pa.Table.from_pylist(records)


def results(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Return the summary by profile, role and metric."""
    found: list[dict[str, object]] = []
    as_assumed = frame[frame["prompt_factor"] == 1.0]
    for (split, profile, role), rows in as_assumed.groupby(["split", "profile", "role"]):
        if split != AS_IT_IS and role != "judged":
            continue
        for metric in METRICS:
            summary = summarize(rows, metric)
            result = verdict(summary, metric) if role == "judged" else "n/a"
            found.append(
                {"split": split, "profile": profile, "role": role}
                | {"metric": metric, "targets": result}
                | asdict(summary)
            )
    return found


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the profiles as they are, with the assumed prompts as they are."""
    return frame[(frame["split"] == AS_IT_IS) & (frame["prompt_factor"] == 1.0)]


def summary_table(found: list[dict[str, object]], split: str) -> Table:
    """Build the table of median and largest errors under one way to split the rows."""
    title = f"errors of the simulated engine against measurement: {SPLITS.get(split, split)}"
    names = ("profile", "rows", "metric", "median", "largest", "targets")
    table = plain_table(title, names, left=("profile", "rows", "metric", "targets"))
    for result in found:
        add_row(
            table,
            str(result["profile"]),
            f"{result['rows']} {result['role']}",
            METRICS[str(result["metric"])],
            percent(result["median"]),
            percent(result["largest"]),
            str(result["targets"]),
        )
    return table


def rows_table(frame: pd.DataFrame) -> Table:
    """Build the table of all rows: measured value and error of each metric."""
    names = ("profile", "task", "batch limit", "role", *METRICS.values())
    words = ("profile", "task", "role")
    table = plain_table("row by row: measured, error (simulated)", names, left=words)
    for _, row in plain(frame).iterrows():
        cells = [
            f"{measured(row, metric)} {percent(row[f'{metric}_error'], '+.1%')}"
            for metric in METRICS
        ]
        add_row(table, row["profile"], row["task"], str(row["max_num_seqs"]), row["role"], *cells)
    return table


def prompts_table(frame: pd.DataFrame) -> Table:
    """Build the table of errors on judged rows by the prompts that are assumed."""
    names = ("profile", "prompts x", *METRICS.values())
    title = "judged rows if prompts were longer or shorter"
    table = plain_table(title, names, left=("profile",))
    judged = frame[(frame["split"] == AS_IT_IS) & (frame["role"] == "judged")]
    for (profile, factor), rows in judged.groupby(["profile", "prompt_factor"]):
        cells = []
        for metric in METRICS:
            summary = summarize(rows, metric)
            cells.append(f"{percent(summary.median)} ({percent(summary.largest)})")
        add_row(table, str(profile), f"{factor:g}", *cells)
    return table


def percent(share: object, form: str = ".1%") -> str:
    """Return a share as a percentage; n/a where it is unknown."""
    value = float(str(share))
    return NOT_MEASURED if math.isnan(value) else format(value, form)


def measured(row: pd.Series, metric: str) -> str:
    """Return a measured value; n/a where nobody measured it."""
    value = float(row[f"{metric}_measured"])
    return NOT_MEASURED if math.isnan(value) else f"{value:.4g}"


def draw_figures(frame: pd.DataFrame, folder: Path) -> None:
    """Draw both figures."""
    # Imported here: a run that is only shown again does not wait for the drawing library.
    from analysis.figures import style, validation_errors, validation_prompts  # noqa: PLC0415

    target = style.begin(folder)
    for module in (validation_errors, validation_prompts):
        style.save(module.draw(frame), target, module.__name__.rsplit(".", 1)[1])
