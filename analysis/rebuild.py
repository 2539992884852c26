"""`python -m analysis.rebuild FOLDER`: everything that a killed run can still show.

From the lines written as each request ended, and the schedule: intended requests without a record
become `unfinished`, and summary, claims, figures and report follow, marked as interrupted. Claims
compare only the repeats in which every arm ran to its end.
"""

import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
from rich.console import Console

from analysis import figures, read, report
from analysis.summarize import summarize
from analysis.tables import print_tables
from bellman.build import build
from bellman.errors import ConfigError, RunError
from bellman.records import REQUESTS, TEXTS, TIMELINE, write_json, write_parquet
from bellman.run_folder import STATUS, alive

INTERRUPTED = "interrupted: no record was written"
"""Reason of an intended request that a killed run left without a record."""


def rebuild(folder: Path) -> None:
    """Write the parquet files, summary, claims, figures and report of a killed run's folder.

    Raises `RunError` when there is nothing to rebuild or a process still writes there.
    """
    rebuild_records(folder)
    summarize(folder)
    figures.draw(folder)
    report.write(folder)


def rebuild_records(folder: Path) -> None:
    """Write the parquet files from the lines, and mark the run as interrupted."""
    lines = folder / "requests.jsonl"
    if not lines.exists():
        raise RunError(f"{folder}: no requests.jsonl; nothing was recorded there")
    _mark_interrupted(folder)
    recorded = read.lines(lines, REQUESTS)
    if recorded.num_rows == 0:
        raise RunError(f"{lines}: no request had ended when the run was killed; run it again")
    lost_table = pa.Table.from_pylist(unfinished(folder, recorded), schema=REQUESTS)
    write_parquet(pa.concat_tables([recorded, lost_table]), folder / "requests.parquet")
    for name, schema in (("timeline", TIMELINE), ("texts", TEXTS)):
        source = folder / f"{name}.jsonl"
        if source.exists():
            write_parquet(read.lines(source, schema), folder / f"{name}.parquet")


def unfinished(folder: Path, recorded: pa.Table) -> list[dict[str, object]]:
    """Return a record for every intended request without one, in the episode that was cut short.

    None where the load model does not send the schedule: what its users would have sent after the
    kill nobody knows.
    """
    schedule = folder / "schedule.parquet"
    if not schedule.exists() or not _sends_schedule(folder):
        return []
    episodes = read.json_file(folder / "episodes.json", [])
    ended = {(episode["repeat"], episode["arm"]) for episode in episodes}
    planned = read.frame(schedule)
    keys = recorded.select(["repeat", "arm", "request_id", "source"]).to_pandas()
    rows: list[dict[str, object]] = []
    for (repeat, arm), done in keys.groupby(["repeat", "arm"], sort=True):
        if (repeat, arm) not in ended:
            missing = planned[planned["repeat"] == repeat]
            missing = missing[~missing["request_id"].isin(done["request_id"])]
            rows += _records(missing, str(arm), str(done["source"].iloc[0]))
    return rows


def _sends_schedule(folder: Path) -> bool:
    load_model = read.config(folder / "config.yaml").get("load_model")
    return load_model is None or bool(build(load_model, "load_model").sends_schedule)


def _records(missing: pd.DataFrame, arm: str, source: str) -> list[dict[str, object]]:
    kept = missing[["repeat", "request_id", "document_id", "phase", "intended_s"]]
    kept = kept.assign(arm=arm, source=source, status="unfinished", reason=INTERRUPTED)
    return [{str(name): value for name, value in row.items()} for row in kept.to_dict("records")]


def _mark_interrupted(folder: Path) -> None:
    """Set a killed run's status to interrupted; refuse a finished one, and one still running.

    Others keep theirs: `failed` says why, and `recorded` lacks nothing but the drawing.
    """
    status = read.json_file(folder / STATUS, {})
    if status.get("status") == "done":
        raise RunError(f"{folder} is finished: redraw it with python -m analysis.figures {folder}")
    if status.get("status") == "running" and alive(status):
        raise RunError(f"{folder} is being written by process {status['process_id']}: wait for it")
    if status.get("status", "running") == "running":
        write_json(status | {"status": "interrupted"}, folder / STATUS)


def main(arguments: list[str]) -> int:
    """Rebuild one folder and print its tables."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m analysis.rebuild FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    try:
        rebuild(folder)
    except (RunError, ConfigError) as error:
        print(error, file=sys.stderr)
        return 1
    print_tables(folder, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
