"""Rows of named columns from CSV, JSON Lines and parquet files, each with its file and line."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bellman.errors import RunError

Rows = Iterator[tuple[str, list[Any]]]
"""(place as `file:line`, values of the wanted columns in order)."""


def read_rows(path: Path, columns: Sequence[str]) -> Rows:
    """Yield the values of `columns` of every row; raises `RunError` with file and line."""
    if not path.is_file():
        raise RunError(f"{path}: no such trace file, set arrivals.path")
    readers = {".csv": _read_csv, ".jsonl": _read_json_lines, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise RunError(f"{path}: a trace is one of {', '.join(readers)}")
    return readers[path.suffix](path, columns)


def _read_csv(path: Path, columns: Sequence[str]) -> Rows:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
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


def _position(path: Path, known: Sequence[str], column: str) -> int:
    if column not in known:
        raise RunError(f"{path}: no column {column!r}, it has {', '.join(known) or 'none'}")
    return known.index(column)


def _read_json_lines(path: Path, columns: Sequence[str]) -> Rows:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            place = f"{path}:{number}"
            try:
                row = json.loads(line)
                values = [row[column] for column in columns]
            except KeyError as error:
                raise RunError(f"{place}: no field {error}, it has {', '.join(row)}") from None
            except (ValueError, TypeError):
                raise RunError(f"{place}: not a JSON object: {line.strip()[:60]}") from None
            yield place, values


def _read_parquet(path: Path, columns: Sequence[str]) -> Rows:
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise RunError(f"{path}: not a parquet file: {error}") from None
    for column in columns:
        _position(path, file.schema_arrow.names, column)
    number = 0
    for batch in file.iter_batches(columns=list(columns)):
        values = [batch.column(column).to_pylist() for column in columns]
        for row in zip(*values, strict=True):
            number += 1
            yield f"{path}: row {number}", list(row)
