"""Any JSON Lines, CSV or parquet file with a document and a summary a row."""

from pathlib import Path

from bellman.corpus.base import Corpus
from bellman.corpus.documents import (
    corpus_from_documents,
    documents_from_rows,
    wanted_columns,
)
from bellman.errors import require
from bellman.row_files.read import read_rows
from bellman.schema import Count, schema


@schema
class DocumentFile:
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
    limit_documents: Count | None = None

    def __post_init__(self) -> None:
        """Check that the file is there."""
        require(Path(self.path).is_file(), "path", self.path, "must be an existing file")

    def load(self) -> Corpus:
        """Load the rows in the file's order; raises `RunError` with file, line and column."""
        columns = (self.document_column, self.summary_column, self.id_column)
        rows = read_rows(Path(self.path), wanted_columns(*columns), "corpus.path")
        documents = documents_from_rows(rows, *columns)
        return corpus_from_documents(self.name, self.licence, documents, self.limit_documents)
