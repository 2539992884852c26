"""Rows of named columns from CSV, JSON Lines and parquet files, each with its file and line."""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bellman.errors import RunError
from bellman.row_files.text import read_lines, shown, starts_with

Rows = Iterator[tuple[str, list[Any]]]
"""(place as `file:line`, values of the wanted columns in order)."""

PARQUET_MAGIC = b"PAR1"
LONGEST_FIELD = 2**31 - 1
"""The csv module's own limit of 131,072 characters is shorter than many a document."""


def read_rows(path: Path, columns: Sequence[str], key: str) -> Rows:
    """Yield the values of `columns` of every row; raises `RunError` with file and line.

    `key` is the configuration's key of the path. Text files may be compressed (`.gz`).
    """
    if path.is_dir():
        raise RunError(f"{path}: a folder, not a file; set {key} to one of its files")
    if not path.is_file():
        raise RunError(f"{path}: no such file, set {key}")
    readers = {".csv": _read_csv, ".jsonl": _read_json_lines, ".parquet": _read_parquet}
    suffix = Path(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
    reader = readers.get(suffix.lower())
    if reader is None:
        raise RunError(f"{path}: {key} must be one of {', '.join(readers)} (text also .gz)")
    try:
        # A text of that name can begin so, too, but then it is no table.
        if starts_with(path, PARQUET_MAGIC):
            reader = _read_parquet
        yield from reader(path, columns)
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {shown(str(error))}") from None


def _read_csv(path: Path, columns: Sequence[str]) -> Rows:
    csv.field_size_limit(LONGEST_FIELD)
    # strict: a quote that is never closed would swallow the rest of the file as one field.
    reader = csv.reader((line for _, line in read_lines(path)), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        at = [_position(path, header, column) for column in columns]
        for fields in reader:
            if not fields:
                continue
            if len(fields) != len(header):
                raise RunError(
                    f"{path}:{reader.line_num}: {len(fields)} fields, the header has {len(header)}"
                )
            yield f"{path}:{reader.line_num}", [fields[index] for index in at]
    except csv.Error as error:
        raise RunError(f"{path}:{reader.line_num}: not CSV: {error}") from None


def _position(path: Path, known: Sequence[str], column: str) -> int:
    if column not in known:
        names = ", ".join(map(shown, known[:20])) or "none"
        raise RunError(f"{path}: no column {column!r}, it has {names}")
    if known.count(column) > 1:
        raise RunError(f"{path}: {known.count(column)} columns {column!r}, must be one")
    return known.index(column)


def _read_json_lines(path: Path, columns: Sequence[str]) -> Rows:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            row = json.loads(line, object_pairs_hook=_Fields)
        except json.JSONDecodeError as error:
            raise RunError(
                f"{place}: not a JSON object ({error.msg}, column {error.colno}): {shown(line)}"
            ) from None
        except (ValueError, RecursionError) as error:  # digits or brackets without end
            raise RunError(f"{place}: not a JSON object ({shown(str(error))})") from None
        if not isinstance(row, _Fields):
            raise RunError(f"{place}: not a JSON object: {shown(line)}")
        for column in columns:
            if column not in row:
                names = ", ".join(map(shown, list(row)[:20])) or "none"
                raise RunError(f"{place}: no field {column!r}, it has {names}")
            if row.counts.get(column, 1) > 1:
                raise RunError(f"{place}: {row.counts[column]} fields {column!r}, must be one")
        yield place, [row[column] for column in columns]


class _Fields(dict[str, Any]):
    """A JSON object that knows which names came more than once."""

    counts: dict[str, int]

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.counts = {} if len(self) == len(pairs) else Counter(name for name, _ in pairs)


def _read_parquet(path: Path, columns: Sequence[str]) -> Rows:
    number = 0
    try:
        file = pq.ParquetFile(path)
        for column in columns:
            _position(path, file.schema_arrow.names, column)
        for batch in file.iter_batches(columns=list(columns)):
            values = [
                _values(batch.column(column), f"{path}: row", number, column) for column in columns
            ]
            for row in zip(*values, strict=True):
                number += 1
                yield f"{path}: row {number}", list(row)
    except (pa.ArrowException, OSError) as error:
        reason = shown(str(error).split("\n", 1)[0])
        where = f"after row {number}: {reason}" if number else f"not a parquet file: {reason}"
        raise RunError(f"{path}: {where}") from None


def _values(array: pa.Array, place: str, before: int, column: str) -> list[Any]:
    """Return an array's values; raises `RunError` with the row of one that Python has no value for.

    Such are instants after the year 9999, zones that nobody knows, text that is no UTF-8.
    """
    try:
        return list(array.to_pylist())
    except (ValueError, OverflowError, KeyError, pa.ArrowException):
        for index, scalar in enumerate(array):
            try:
                scalar.as_py()
            except (ValueError, OverflowError, KeyError, pa.ArrowException) as error:
                raise RunError(
                    f"{place} {before + index + 1}: {column} cannot be read: {shown(str(error))}"
                ) from None
        raise
