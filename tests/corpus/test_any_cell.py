"""Whatever a corpus's columns hold: texts, or one line that names file, row and column."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given

from bellman.corpus.document_file import DocumentFile
from bellman.errors import ConfigError, RunError
from tests.row_files.values import JSON_VALUES, SAME_FOLDER


@SAME_FOLDER
@given(JSON_VALUES, JSON_VALUES)
@example("\ud800", "a")
@example(2**70, True)
@example(float("nan"), [["nested"], []])
def test_a_corpus_of_any_values_is_texts_or_one_line(tmp_path, name, document):
    path = tmp_path / "a.jsonl"
    row = {"id": name, "document": document, "summary": "Kurz."}
    path.write_text(json.dumps({"id": "first", "document": "A.", "summary": "B."}) + "\n")
    path.open("a").write(json.dumps(row) + "\n")
    try:
        corpus = DocumentFile(str(path), id_column="id").load()
    except RunError as error:
        assert str(error).startswith(f"{path}:2: ")
        assert any(column in str(error) for column in ("id", "document"))
        assert str(error).isprintable()
    else:
        *_, last = corpus.documents
        assert corpus.digest
        assert len(corpus.documents) == 1 or last.text.split() == str(document).split()


PARQUET_CELLS = [
    (pa.array([1, 2]), ["1", "2"]),
    (pa.array([b"A.", b"\xc3\xa4."], pa.binary()), ["A.", "ä."]),
    (pa.array(["A.", None]), ["A."]),
    (pa.array([1.5, 2.5]), "document must be text or null, not float: 1.5"),
    (pa.array([True, False]), "document must be text or null, not bool: True"),
    (pa.array([["A.", "B."], []]), "document must be text or null, not list: ['A.', 'B.']"),
    (pa.array([{"a": 1}, {"a": 2}]), "document must be text or null, not dict: {'a': 1}"),
    (pa.array([b"\xff", b""], pa.binary()), "document must be text or null, not bytes, not UTF-8"),
    (pa.array([Decimal("1.5"), None]), "document must be text or null, not Decimal"),
    (pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 2), "document must be text or null, not datet"),
    (pa.array([date(2024, 1, 1)] * 2), "document must be text or null, not date"),
    (
        pa.Array.from_buffers(
            pa.string(), 2, pa.array([b"\xff", b"A"], pa.binary()).buffers()
        ),
        "document cannot be read: 'utf-8' codec can't decode",
    ),
    (
        pa.array([2**50, 1], pa.timestamp("ms")),
        "document cannot be read: ",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "expected"), PARQUET_CELLS, ids=[str(c.type) for c, _ in PARQUET_CELLS]
)
def test_a_corpus_of_any_column_of_parquet_is_texts_or_one_line(tmp_path, cells, expected):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"document": cells, "summary": ["S."] * 2}), path)
    if isinstance(expected, list):
        documents = DocumentFile(str(path)).load().documents
        assert [document.text for document in documents] == expected
    else:
        with pytest.raises(RunError) as error:
            DocumentFile(str(path)).load()
        assert str(error.value).startswith(f"{path}: row 1: {expected}")


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([1, 2]), ["1", "2"]),
        (pa.array([1.0, 2.0]), ["1.0", "2.0"]),
        (pa.array([Decimal("1.10"), Decimal("2.00")]), ["1.10", "2.00"]),
        (pa.array([date(2024, 1, 1), date(2024, 1, 2)]), ["2024-01-01", "2024-01-02"]),
        (pa.array(["x", "x"]), "row 2: id=x is the id of {path}: row 1, too, must be unique"),
        (pa.array(["x", None]), "row 2: id is null, must be an id"),
        (pa.array(["x", ""]), "row 2: id is empty, must be an id"),
        (pa.array([1.0, float("nan")]), "row 2: id must be text or null, not float: nan"),
    ],
)
def test_ids_of_any_column_are_unique_texts_or_one_line(tmp_path, ids, expected):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ids, "document": ["A."] * 2, "summary": ["S."] * 2}), path)
    if isinstance(expected, list):
        documents = DocumentFile(str(path), id_column="id").load().documents
        assert [document.document_id for document in documents] == expected
    else:
        with pytest.raises(RunError) as error:
            DocumentFile(str(path), id_column="id").load()
        assert str(error.value) == f"{path}: {expected.format(path=path)}"


def test_a_file_without_rows_says_so(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("document,summary\n")
    with pytest.raises(ConfigError, match="at least one document; left out: no rows"):
        DocumentFile(str(path)).load()
