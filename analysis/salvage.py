"""What can still be used of the files that a run wrote line by line, and of their parquet form.

A crash leaves half a line at the end, or blocks of NUL bytes; a disk or a copy, anything. Every
line that is whole and of this schema is taken once; the others are counted and named. What a
parquet file of the run still holds is never given up for less.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from analysis import read
from bellman.foreign_text import whole_characters
from bellman.records import ATTEMPTS, REQUESTS, STATUSES, TEXTS, TIMELINE

NAMED = 3
"""Bad lines that a message names; all of them are counted."""
NULS = re.compile(rb"\0+")


@dataclass(frozen=True)
class RecordFile:
    """A kind of record: `<name>.jsonl` while the run goes on, `<name>.parquet` at its end."""

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    """What no two records share."""
    needed: tuple[str, ...]
    """Fields without which a record says nothing."""
    optional: bool = False
    """Only some episodes have such records: those that can have something to say."""


FILES = (
    RecordFile(
        "requests",
        REQUESTS,
        ("repeat", "arm", "request_id"),
        ("document_id", "phase", "intended_s", "source", "status"),
    ),
    RecordFile("timeline", TIMELINE, ("repeat", "arm", "time_s"), ("phase", "source")),
    RecordFile("texts", TEXTS, ("text_id",), ("document_id", "text")),
    RecordFile(
        "attempts",
        ATTEMPTS,
        ("repeat", "arm", "request_id", "attempt"),
        ("sent_s", "source", "status"),
        optional=True,
    ),
    RecordFile(
        "replicas",
        TIMELINE,
        ("repeat", "arm", "time_s", "replica"),
        ("phase", "source"),
        optional=True,
    ),
)


@dataclass
class Salvaged:
    """The good lines of one file, and what became of the others."""

    table: pa.Table
    lines: int = 0
    duplicates: int = 0
    bad: dict[int, str] = field(default_factory=dict)
    """Reason by line number, from 1."""

    @property
    def notes(self) -> list[str]:
        """What could not be used, in words."""
        notes = []
        if self.bad:
            named = [f"line {number}: {self.bad[number]}" for number in sorted(self.bad)[:NAMED]]
            more = len(self.bad) - len(named)
            named += [f"and {more} more"] if more else []
            notes.append(f"{len(self.bad)} of {self.lines} lines not usable ({'; '.join(named)})")
        if self.duplicates:
            notes.append(f"{self.duplicates} records twice, taken once")
        return notes


def salvage_lines(path: Path, kind: RecordFile) -> Salvaged:
    """Take every good line of a JSON Lines file; there is none where there is no file."""
    found = Salvaged(kind.schema.empty_table())
    if not path.exists():
        return found
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise read.unreadable(path, error) from None
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found.lines += 1
        pieces = [piece for piece in NULS.split(line) if piece.strip()]
        results = [_row(piece, kind) for piece in pieces] or ["NUL bytes"]
        rows += [result for result in results if isinstance(result, dict)]
        reasons = [result for result in results if isinstance(result, str)]
        if reasons:
            found.bad[number] = "cut off" if number == len(lines) and pieces else reasons[0]
    found.table, found.duplicates = distinct(pa.Table.from_pylist(rows, kind.schema), kind)
    return found


def distinct(table: pa.Table, kind: RecordFile) -> tuple[pa.Table, int]:
    """Return the first record of each key, and how many others there were."""
    again = table.select(list(kind.key)).to_pandas().duplicated()
    return table.filter(pa.array(~again)), int(again.sum())


def _row(line: bytes, kind: RecordFile) -> dict[str, Any] | str:
    """Return the record of a line, or why it is none."""
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError:
        return "not UTF-8"
    except (ValueError, RecursionError):
        return "not JSON"
    if not isinstance(row, dict):
        return "no JSON object"
    wrong = _other_schema(row, kind)
    return f"another schema version: {', '.join(wrong)}" if wrong else row


def _other_schema(row: dict[str, Any], kind: RecordFile) -> list[str]:
    """Return what does not fit in a line's object; what an earlier version had not, may lack."""
    wrong = [f"unknown {name}" for name in row if name not in kind.schema.names]
    wrong += [f"no {name}" for name in (*kind.key, *kind.needed) if row.get(name) is None]
    wrong += [
        f"{field.name} is no {field.type}"
        for field in kind.schema
        if row.get(field.name) is not None and not _fits(row[field.name], field.type)
    ]
    if row.get("status") not in {None, *STATUSES}:
        wrong.append(f"unknown status {row['status']}")
    return wrong


def _fits(value: Any, kind: pa.DataType) -> bool:
    """Whether a value of a JSON line can stand in a column."""
    if pa.types.is_list(kind):
        return isinstance(value, list) and all(_fits(one, kind.value_type) for one in value)
    if pa.types.is_string(kind):
        return isinstance(value, str) and value == whole_characters(value)
    if isinstance(value, bool):
        return False
    if pa.types.is_integer(kind):
        return isinstance(value, int) and abs(value) < 2 ** (kind.bit_width - 1)
    return isinstance(value, int | float)
