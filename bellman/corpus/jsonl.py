"""Any JSON Lines file with a document and a summary a line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellman.corpus.base import Corpus
from bellman.corpus.documents import corpus_from_documents, documents_from_rows, require_limit
from bellman.errors import ConfigError, RunError, require


@dataclass(frozen=True)
class JsonLines:
    """Documents from a file of your own."""

    path: str
    """The file; relative to the working directory."""
    document_column: str = "document"
    summary_column: str = "summary"
    id_column: str | None = None
    """Unique ids; null numbers the rows from 0 (blank lines are no rows)."""
    name: str = "jsonl"
    """Shown in tables and figures."""
    licence: str = "unknown"
    limit_documents: int | None = None

    def __post_init__(self) -> None:
        """Check that the file is there."""
        require_limit(self.limit_documents)
        require(Path(self.path).is_file(), "corpus.path", self.path, "must be an existing file")

    def load(self) -> Corpus:
        """Load the rows in the file's order; raises `RunError` with file and line."""
        import datasets  # noqa: PLC0415  (a second's import, only where a corpus is loaded)

        columns = [self.document_column, self.summary_column]
        if self.id_column is not None:
            columns.append(self.id_column)
        rows = datasets.Dataset.from_list(read_rows(Path(self.path), columns))
        documents = documents_from_rows(
            rows, self.document_column, self.summary_column, self.id_column
        )
        return corpus_from_documents(self.name, self.licence, documents, self.limit_documents)


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, str | None]]:
    """Read `columns` of every line as text (or null); blank lines are skipped."""
    rows = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            place = f"{path} line {number}"
            if line.strip():
                rows.append(_row(_parse(line, place), columns, place))
    return rows


def _parse(line: bytes, place: str) -> dict[str, Any]:
    try:
        # utf-8-sig: files written on Windows may start with a byte order mark.
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RunError(f"{place}: not UTF-8 at byte {error.start}; convert the file") from None
    except json.JSONDecodeError as error:
        raise RunError(f"{place}: not JSON ({error.msg}, column {error.colno})") from None
    if not isinstance(value, dict):
        raise RunError(f"{place}: must be a JSON object, not {type(value).__name__}")
    return value


def _row(value: dict[str, Any], columns: Sequence[str], place: str) -> dict[str, str | None]:
    row: dict[str, str | None] = {}
    for column in columns:
        if column not in value:
            known = ", ".join(value) or "none"
            raise ConfigError("corpus column", column, f"not in {place}, which has {known}")
        cell = value[column]
        if isinstance(cell, int) and not isinstance(cell, bool):
            cell = str(cell)
        if not isinstance(cell, str | None):
            kind = type(cell).__name__
            raise RunError(f"{place}: {column} must be text or null, not {kind}")
        row[column] = cell
    return row
