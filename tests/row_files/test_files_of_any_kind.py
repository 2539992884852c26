"""Whatever file is given: its rows, or one line that names file and row."""

import csv
import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bellman.errors import RunError
from bellman.row_files.read import read_rows
from tests.row_files.values import SAME_FOLDER

COLUMNS = ["document", "summary"]
ROWS = [["Ein Satz, mit „Zeichen“.\nUnd 漢字.", "Kurz."], ["Two.", ""], ['"quoted", or not', "x"]]


def csv_text(rows=ROWS, end="\n"):
    text = io.StringIO()
    csv.writer(text, lineterminator=end).writerows([COLUMNS, *rows])
    return text.getvalue()


def json_text(rows=ROWS, end="\n"):
    return "".join(json.dumps(dict(zip(COLUMNS, row, strict=True))) + end for row in rows)


def read(path, columns=COLUMNS):
    return [values for _, values in read_rows(path, columns, "corpus.path")]


def refused(path, columns=COLUMNS):
    with pytest.raises(RunError) as error:
        read(path, columns)
    message = str(error.value)
    assert message.isprintable(), "one line that any terminal can show"
    assert len(message) < len(str(path)) + 250
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_text_in_any_encoding_and_packing_is_the_same_table(tmp_path, end, encoding, compress):
    for name, text in (("a.csv", csv_text(end=end)), ("a.JSONL", json_text(end=end))):
        for suffix in ("", ".gz"):  # the name of a compressed file need not say so, nor the reverse
            path = tmp_path / f"{name}{suffix}"
            path.write_bytes(compress(text.encode(encoding)))
            assert read(path) == ROWS


def test_a_parquet_file_of_any_kind_of_text_is_the_same_table(tmp_path):
    expected = [[first, second or None] for first, second in ROWS]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        arrays = [pa.array(list(column)).cast(kind) for column in zip(*expected, strict=True)]
        for name in ("a.parquet", "b.csv"):  # the content decides
            pq.write_table(pa.table(arrays, COLUMNS), tmp_path / name)
            assert read(tmp_path / name) == expected


def test_a_long_document_is_no_longer_than_its_file(tmp_path):
    long = "word " * 100_000
    (tmp_path / "a.csv").write_text(csv_text([[long, "x"]]))
    assert read(tmp_path / "a.csv") == [[long, "x"]]


BAD_FILES = {
    "a folder": ("a.csv", None, ": a folder, not a file; set corpus.path to one of its files"),
    "another kind": ("a.xlsx", b"PK", ": corpus.path must be one of .csv, .jsonl, .parquet"),
    "no header": ("a.csv", b"", ": no column 'document', it has none"),
    "ragged": ("a.csv", b"document,summary\na,b\nc\n", ":3: 1 fields, the header has 2"),
    "ragged after a quoted line end": (
        "a.csv",
        b'document,summary\n"a\nb",c\nd,e,f\n',
        ":4: 3 fields, the header has 2",
    ),
    "a quote that never ends": ("a.csv", b'document,summary\n"a,b\nc,d\n', ":3: not CSV"),
    "a column twice": ("a.csv", b"document,summary,document\n", ": 2 columns 'document', must be"),
    "a field twice": ("a.jsonl", b'{"document": 1, "document": 2}', ":1: 2 fields 'document'"),
    "Latin 1": ("a.csv", "document,summary\nä,b\n".encode("latin-1"), ":2: not UTF-8 at byte 0"),
    "UTF-16 without a mark": ("a.csv", csv_text().encode("utf-16-le"), ""),
    "half a UTF-16": ("a.jsonl", b"\xff\xfe{\x00\n", ":1: not UTF-16"),
    "half a gzip": ("a.csv.gz", gzip.compress(csv_text().encode())[:-9], ": a broken gzip file"),
    "parquet in name": ("a.parquet", b"document,summary\na,b\n", ": not a parquet file"),
    "parquet in its beginning": ("a.parquet", b"PAR1 and no more", ": not a parquet file"),
    "not JSON": ("a.jsonl", b'\n{"document": 1,\n', ":2: not a JSON object"),
    "a list": ("a.jsonl", b"[{}]", ":1: not a JSON object: [{}]"),
    "deep": ("a.jsonl", b'{"document": ' + b"[" * 10**6, ":1: not a JSON object"),
    "many digits": ("a.jsonl", b'{"document": ' + b"9" * 10**4 + b"}", ":1: not a JSON object"),
    "other fields": ("a.jsonl", b'{"\\ud800\\n": 1}', ":1: no field 'document', it has \\ud800"),
}


@pytest.mark.parametrize("bad", BAD_FILES)
def test_a_file_that_is_no_table_is_named_with_its_row(tmp_path, bad):
    name, content, message = BAD_FILES[bad]
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert refused(path).startswith(message)


@SAME_FOLDER
@given(st.binary(max_size=60), st.sampled_from([".csv", ".jsonl", ".parquet", ".csv.gz"]))
@example(b"PAR1\x00\x00PAR1", ".csv")
@example(b"\x1f\x8b\x08\x00", ".jsonl")
@example(b"\xff\xfe\x00\xd8", ".csv")
@example(b"document,summary\n\x00,\x00\r", ".csv")
def test_any_bytes_are_rows_or_one_line(tmp_path, content, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    try:
        rows = read(path)
    except RunError as error:
        assert str(error).startswith(str(path))
        assert "\n" not in str(error)
    else:
        assert all(len(row) == 2 for row in rows)
