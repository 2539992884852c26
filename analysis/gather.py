"""Gathers the records of all episodes into frames: one row a request, a sample, a text.

Each frame has `episode_id`, arm, repeat and a column for each axis of the study. `attempts` and
`replicas` hold the episodes that can have such records, and are not there where none has: a request
without attempts was sent once, as its own record says. An episode that
was cut short is there as far as it came: its intended requests without a record are `unfinished`.
An episode that stands at several points of a grid is there once for each of them. Episodes are
written one after the other, so that memory does not grow with their number.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis import read
from analysis.plan import CAPACITY, EPISODE, PlannedCell, read_plan
from analysis.salvage import FILES, RecordFile, salvage_lines
from bellman.records import REQUESTS, TEXTS, read_json_lines, write_json
from bellman.run_files import BEGUN, DONE, SCHEDULES

GATHERED = "gathered.json"
"""What could not be used of the records."""
INTERRUPTED = "interrupted: no record was written"
"""Reason of an intended request that a killed run left without a record."""


SAID_FIRST = ("arm", "repeat", "source", "schedule_hash")
SAID_LAST = ("energy", "lines")
"""What an episode says of itself when it begins, and besides when it has ended."""
POINTS = "bellman.points"
"""In a frame's metadata: the axes of each row group, as JSON."""


@dataclass(frozen=True)
class Gathered:
    """One episode of the plan: what it says of itself, and whether it ran to its end."""

    cell: PlannedCell
    content: dict[str, Any]
    done: bool


def gather(folder: Path) -> None:
    """Write the frames of a run folder from its episodes; raises `RunError` without a plan."""
    cells = read_plan(folder)
    episodes = [found for cell in cells if (found := gathered(cell)) is not None]
    axes = axis_fields(cells)
    notes: list[str] = []
    for kind in FILES:
        if kind.optional and not any(has_records(one, kind) for one in episodes):
            (folder / f"{kind.name}.parquet").unlink(missing_ok=True)
        elif kind.schema is TEXTS:
            write_texts(folder, kind, episodes, notes)
        else:
            write_frame(folder, kind, axes, episodes, notes)
    write_json({"notes": list(dict.fromkeys(notes))}, folder / GATHERED)
    ended = [one for one in episodes if one.done]
    write_json([entry(one) for one in ended], folder / "episodes.json")
    windows = [placed(one) | window for one in ended for window in one.content["energy"]["windows"]]
    meters = [placed(one) | one.content["energy"]["meter"] for one in ended]
    write_json({"windows": windows, "meters": meters}, folder / "energy.json")
    write_json(
        [capacity(cell) for cell in cells if cell.kind == CAPACITY], folder / "capacity.json"
    )
    if not axes:
        write_schedules(folder, episodes)


def has_records(one: Gathered, kind: RecordFile) -> bool:
    """Whether an episode has, or had, a file of this kind."""
    there = (one.cell.folder / f"{kind.name}.jsonl").exists()
    return there or kind.name in one.content.get("lines", {})


def gathered(cell: PlannedCell) -> Gathered | None:
    """Return an episode that has begun; None for one that has not, and for other cells."""
    if cell.kind != EPISODE:
        return None
    done = cell.content is not None
    content = cell.content if done else cell.begun
    if content is None:
        return None
    missing = [name for name in (*SAID_FIRST, *(SAID_LAST if done else ())) if name not in content]
    if missing:
        file = cell.folder / (DONE if done else BEGUN)
        raise read.unreadable(file, ValueError(f"it has no {', '.join(missing)}"))
    return Gathered(cell, content, done)


def placed(one: Gathered) -> dict[str, Any]:
    """Return which episode it is, and where in the study it stands."""
    which = {"episode_id": one.cell.key, "arm": one.content["arm"], "repeat": one.content["repeat"]}
    return which | {"axes": one.cell.axes}


def entry(one: Gathered) -> dict[str, Any]:
    """Return what episodes.json says of an episode; its energy stands in energy.json."""
    left_out = {"energy", "lines", "kind"}
    return placed(one) | {k: v for k, v in one.content.items() if k not in left_out}


def capacity(cell: PlannedCell) -> dict[str, Any]:
    """Return what capacity.json says of one measurement; null where it has not ended."""
    content = cell.content or {"capacity_rps": None}
    return {"axes": cell.axes} | {k: v for k, v in content.items() if k != "kind"}


def axis_fields(cells: list[PlannedCell]) -> list[pa.Field]:
    """Return a column for each axis, in the order in which the plan has them."""
    values: dict[str, list[Any]] = {}
    for cell in cells:
        for name, value in cell.axes.items():
            values.setdefault(name, []).append(value)
    return [pa.field(name, _axis_type(found)) for name, found in values.items()]


def _axis_type(values: list[Any]) -> pa.DataType:
    try:
        kind = pa.array(values).type
    except (pa.ArrowException, ValueError, TypeError):
        return pa.string()
    return pa.string() if pa.types.is_nested(kind) or pa.types.is_null(kind) else kind


def _axis_value(value: Any, kind: pa.DataType) -> Any:
    if kind == pa.string() and value is not None and not isinstance(value, str):
        return json.dumps(value)
    return value


def write_frame(
    folder: Path, kind: RecordFile, axes: list[pa.Field], episodes: list[Gathered], notes: list[str]
) -> None:
    """Write one frame, a row group (or two) an episode; a file that exists is whole."""
    whole = pa.schema([pa.field("episode_id", pa.string()), *axes, *kind.schema])
    partial = folder / f"{kind.name}.parquet.partial"
    points: list[dict[str, Any]] = []
    with pq.ParquetWriter(partial, whole, compression="zstd") as writer:
        for one in episodes:
            for table in tables(folder, one, kind, notes):
                if table.num_rows == 0:
                    continue
                columns = [pa.repeat(pa.scalar(one.cell.key), table.num_rows)]
                columns += [
                    pa.repeat(
                        pa.scalar(_axis_value(one.cell.axes.get(axis.name), axis.type), axis.type),
                        table.num_rows,
                    )
                    for axis in axes
                ]
                rows = pa.table([*columns, *table.columns], schema=whole)
                writer.write_table(rows, row_group_size=rows.num_rows)
                points.append(one.cell.axes)
        writer.add_key_value_metadata({POINTS: json.dumps(points)})
    partial.replace(folder / f"{kind.name}.parquet")


def tables(folder: Path, one: Gathered, kind: RecordFile, notes: list[str]) -> Iterator[pa.Table]:
    """Yield the records of an episode, and those of the intended requests that have none.

    What could not be used goes into `notes`.
    """
    table = whole_lines(one, kind)
    if table is None:
        salvaged = salvage_lines(one.cell.folder / f"{kind.name}.jsonl", kind)
        table = salvaged.table
        notes += [f"{one.cell.label}, {kind.name}: {note}" for note in salvaged.notes]
        missing = one.content["lines"].get(kind.name, 0) - table.num_rows if one.done else 0
        if missing > 0:
            notes.append(f"{one.cell.label}, {kind.name}: {missing} records are lost")
    yield table
    if kind.schema is REQUESTS and not one.done and one.content["sends_schedule"]:
        yield unfinished(folder, one, table)


def whole_lines(one: Gathered, kind: RecordFile) -> pa.Table | None:
    """Return the records of a file in which every line is good; None for any other."""
    file = one.cell.folder / f"{kind.name}.jsonl"
    if not one.done or not file.exists():
        return None
    try:
        table = read_json_lines(file, kind.schema)
    except (OSError, ValueError, pa.ArrowException):
        return None
    return table if table.num_rows == one.content["lines"].get(kind.name) else None


def unfinished(folder: Path, one: Gathered, recorded: pa.Table) -> pa.Table:
    """Return a record for every intended request of a killed episode that has none."""
    planned = read.parquet(folder / SCHEDULES / f"{one.content['schedule_hash']}.parquet")
    known = pc.is_in(planned["request_id"], value_set=recorded["request_id"])
    missing = planned.filter(pc.invert(known))
    fixed = {
        "repeat": one.content["repeat"],
        "arm": one.content["arm"],
        "source": one.content["source"],
        "status": "unfinished",
        "reason": INTERRUPTED,
    }
    kept = ("request_id", "document_id", "phase", "intended_s")
    columns = []
    for column in REQUESTS:
        if column.name in fixed:
            columns.append(pa.repeat(pa.scalar(fixed[column.name], column.type), missing.num_rows))
        elif column.name in kept:
            columns.append(missing[column.name].cast(column.type))
        else:
            columns.append(pa.nulls(missing.num_rows, column.type))
    return pa.table(columns, schema=REQUESTS)


def write_texts(folder: Path, kind: RecordFile, episodes: list[Gathered], notes: list[str]) -> None:
    """Write the distinct texts of all episodes, in the order in which they first came."""
    seen: set[str] = set()
    partial = folder / "texts.parquet.partial"
    with pq.ParquetWriter(partial, TEXTS, compression="zstd") as writer:
        for one in {one.cell.key: one for one in episodes}.values():
            for table in tables(folder, one, kind, notes):
                ids = table["text_id"].to_pylist()
                fresh = [number for number, text_id in enumerate(ids) if text_id not in seen]
                seen.update(ids)
                if fresh:
                    writer.write_table(table.take(fresh))
    partial.replace(folder / "texts.parquet")


def write_schedules(folder: Path, episodes: list[Gathered]) -> None:
    """Write the schedules of all repeats as one table, which every arm of a repeat shares."""
    digests = {one.content["repeat"]: one.content["schedule_hash"] for one in episodes}
    parts = [
        read.parquet(folder / SCHEDULES / f"{digest}.parquet")
        for _, digest in sorted(digests.items())
    ]
    if parts:
        partial = folder / "schedule.parquet.partial"
        # The phases of all repeats are the same; the metadata of the first has them.
        pq.write_table(pa.concat_tables(part.cast(parts[0].schema) for part in parts), partial)
        partial.replace(folder / "schedule.parquet")
