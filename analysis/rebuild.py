"""`python -m analysis.rebuild FOLDER`: everything that a killed or damaged run can still show.

From the lines written as each request ended, what the parquet files still hold, and the schedule:
intended requests without a record become `unfinished`, and summary, claims, figures and report
follow, marked as interrupted. Claims compare only the repeats in which every arm ran to its end.
Of a finished run, parquet files that are lost or damaged are made again. What could not be used is
in rebuilt.json, among the warnings of the summary, and on the console.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from analysis import figures, read, report
from analysis.salvage import FILES, RecordFile, distinct, salvage_lines, whole_parquet
from analysis.summarize import summarize
from analysis.tables import print_tables
from bellman.build import build
from bellman.errors import ConfigError, RunError
from bellman.records import REQUESTS, write_json, write_parquet
from bellman.run_folder import STATUS, writing_into

INTERRUPTED = "interrupted: no record was written"
"""Reason of an intended request that a killed run left without a record."""
REBUILT = "rebuilt.json"
QUALITY = "quality.parquet"


@dataclass(frozen=True)
class Found:
    """The records of one kind that a folder still holds, once each."""

    table: pa.Table
    is_more: bool
    """Whether the parquet file lacks some of them, or is not there."""
    is_damaged: bool
    """Whether the parquet file is there and cannot be read."""
    notes: list[str]
    """What could not be used."""


def rebuild(folder: Path) -> list[str]:
    """Write the parquet files, summary, claims, figures and report; return what was not usable.

    Raises `RunError` when there is nothing to rebuild or a process still writes there.
    """
    with writing_into(folder):
        notes = rebuild_records(folder)
        summarize(folder)
        figures.draw(folder)
        report.write(folder)
        return notes


def rebuild_records(folder: Path) -> list[str]:
    """Write the parquet files, mark a killed run as interrupted, and return what was not usable."""
    is_done = read.json_file(folder / STATUS, {}).get("status") == "done"
    found = {kind.name: find(folder, kind) for kind in FILES}
    scores_damaged = _is_damaged(folder / QUALITY)
    if is_done and not scores_damaged and not any(records.is_more for records in found.values()):
        raise RunError(f"{folder} is finished: redraw it with python -m analysis.figures {folder}")
    notes = [note for records in found.values() for note in records.notes]
    recorded = found["requests"].table
    if recorded.num_rows == 0:
        why = "; ".join(notes) or "nothing was recorded there"
        raise RunError(f"{folder}: no record of a request ({why}): run it again")
    if not is_done:
        _mark_interrupted(folder)
    lost, missing = unfinished(folder, recorded)
    if missing:
        notes.append(f"{missing} requests of ended episodes have no record: no number has them")
    tables = {name: records.table for name, records in found.items() if records.is_more}
    if lost:
        lost_table = pa.Table.from_pylist(lost, schema=REQUESTS)
        tables["requests"] = pa.concat_tables([recorded, lost_table])
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        if found[name].is_damaged:
            _set_aside(path)
        write_parquet(table, path)
    if scores_damaged:  # they come from the corpus, which is not here
        _set_aside(folder / QUALITY)
        notes.append(f"{QUALITY}: cannot be read: the answers count as not scored")
    write_json({"notes": notes}, folder / REBUILT)
    return notes


def find(folder: Path, kind: RecordFile) -> Found:
    """Return the records of the parquet file and of the lines together."""
    path, lines = folder / f"{kind.name}.parquet", folder / f"{kind.name}.jsonl"
    salvaged = salvage_lines(lines, kind)
    notes = [f"{lines.name}: {note}" for note in salvaged.notes]
    whole = whole_parquet(path, kind) if path.exists() else None
    if whole is None:
        is_damaged = path.exists()
        notes += [f"{path.name}: cannot be read, made again from {lines.name}"] * is_damaged
        return Found(salvaged.table, is_damaged or len(salvaged.table) > 0, is_damaged, notes)
    if kind.schema is REQUESTS:  # those that an earlier rebuild added are no records
        made_up = pc.fill_null(pc.equal(whole["reason"], INTERRUPTED), fill_value=False)
        whole = whole.filter(pc.invert(made_up))
    together, _ = distinct(pa.concat_tables([whole, salvaged.table]), kind)
    return Found(together, len(together) > len(whole), is_damaged=False, notes=notes)


def unfinished(folder: Path, recorded: pa.Table) -> tuple[list[dict[str, object]], int]:
    """Return a record for every intended request without one, in the episode that was cut short.

    And how many are without one in the episodes that ended. None where the load model does not
    send the schedule: what its users would have sent after the kill nobody knows.
    """
    schedule = folder / "schedule.parquet"
    if not schedule.exists() or not _sends_schedule(folder):
        return [], 0
    episodes = read.json_file(folder / "episodes.json", [])
    ended = {(episode["repeat"], episode["arm"]) for episode in episodes}
    planned = read.frame(schedule)
    keys = recorded.select(["repeat", "arm", "request_id", "source"]).to_pandas()
    rows: list[dict[str, object]] = []
    missing_of_ended = 0
    for (repeat, arm), done in keys.groupby(["repeat", "arm"], sort=True):
        missing = planned[planned["repeat"] == repeat]
        missing = missing[~missing["request_id"].isin(done["request_id"])]
        if (repeat, arm) in ended:
            missing_of_ended += len(missing)
        else:
            rows += _records(missing, str(arm), str(done["source"].iloc[0]))
    return rows, missing_of_ended


def _sends_schedule(folder: Path) -> bool:
    load_model = read.config(folder / "config.yaml").get("load_model")
    return load_model is None or bool(
        build(load_model, "load_model", "bellman.load.models").sends_schedule
    )


def _records(missing: pd.DataFrame, arm: str, source: str) -> list[dict[str, object]]:
    kept = missing[["repeat", "request_id", "document_id", "phase", "intended_s"]]
    kept = kept.assign(arm=arm, source=source, status="unfinished", reason=INTERRUPTED)
    return [{str(name): value for name, value in row.items()} for row in kept.to_dict("records")]


def _mark_interrupted(folder: Path) -> None:
    """Set a killed run's status to interrupted.

    Others keep theirs: `failed` says why, and `recorded` lacks nothing but the drawing.
    """
    status = read.json_file(folder / STATUS, {})
    if status.get("status", "running") == "running":
        write_json(status | {"status": "interrupted"}, folder / STATUS)


def _is_damaged(path: Path) -> bool:
    try:
        read.frame(path)
    except RunError:
        return True
    return False


def _set_aside(path: Path) -> None:
    """Rename a file to the first free `<path>.unreadable-<n>`."""
    number = 1
    while (aside := path.with_name(f"{path.name}.unreadable-{number}")).exists():
        number += 1
    path.rename(aside)


def main(arguments: list[str]) -> int:
    """Rebuild one folder and print its tables."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m analysis.rebuild FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    try:
        notes = rebuild(folder)
    except (RunError, ConfigError) as error:
        print(error, file=sys.stderr)
        return 1
    console = Console()
    for note in notes:
        console.print(note, style="bold red", markup=False, soft_wrap=True)
    print_tables(folder, console)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
