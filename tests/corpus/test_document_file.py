from pathlib import Path

import pytest

from bellman.corpus.document_file import DocumentFile
from bellman.errors import ConfigError, RunError


def write(folder: Path, *lines: str | bytes) -> str:
    path = folder / "documents.jsonl"
    path.write_bytes(b"\n".join(x if isinstance(x, bytes) else x.encode() for x in lines) + b"\n")
    return str(path)


def test_reads_configured_columns_in_order(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '\ufeff{"key": "b", "article": "One. Two.\\n\\nThree.", "tl;dr": "First. Second."}',
        "",
        '{"key": 7, "article": "Vier.", "tl;dr": "Kurz.", "other": []}',
    )
    corpus = DocumentFile(path, "article", "tl;dr", "key", name="mine").load()
    first, second = corpus.documents
    assert (first.document_id, second.document_id) == ("b", "7")
    assert first.text == "One. Two.\n\nThree."
    assert first.sentences == ("One.", "Two.", "Three.")
    assert first.reference == "First.\nSecond."
    assert corpus.name == "mine"


def test_empty_texts_are_counted_and_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '{"document": "A b.", "summary": "C."}',
        '{"document": " \\n ", "summary": "C."}',
        '{"document": null, "summary": "C."}',
        '{"document": "A.", "summary": ""}',
        '{"document": "D.", "summary": "E."}',
    )
    corpus = DocumentFile(path).load()
    assert [document.document_id for document in corpus.documents] == ["0", "4"]
    assert corpus.left_out == {"empty document": 2, "empty reference": 1}
    assert len(DocumentFile(path, limit_documents=1).load().documents) == 1


def test_no_document_left_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least one document; left out: 1 empty reference"):
        DocumentFile(write(tmp_path, '{"document": "A.", "summary": null}')).load()
    with pytest.raises(ConfigError, match="no rows"):
        DocumentFile(write(tmp_path)).load()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{nonsense}", r"documents\.jsonl:2: not a JSON object"),
        ("[1, 2]", r"jsonl:2: not a JSON object: \[1, 2\]"),
        (b'{"document": "\xff", "summary": "x"}', "jsonl:2: not UTF-8 at byte 14"),
        (
            '{"document": ["A."], "summary": "x"}',
            "jsonl:2: document must be text or null, not list",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str | bytes, message: str) -> None:
    path = write(tmp_path, '{"document": "A.", "summary": "B."}', line)
    with pytest.raises(RunError, match=message):
        DocumentFile(path).load()


def test_a_missing_column_is_named_with_what_is_there(tmp_path: Path) -> None:
    path = write(tmp_path, '{"text": "A.", "summary": "B."}')
    with pytest.raises(RunError, match=r"jsonl:1: no field 'document', it has text, summary$"):
        DocumentFile(path).load()


def test_an_id_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, *['{"id": "x", "document": "A.", "summary": "B."}'] * 2)
    with pytest.raises(RunError, match=r"jsonl:2: id=x is the id of .*jsonl:1, too, must be uniq"):
        DocumentFile(path, id_column="id").load()


def test_a_missing_file_is_refused_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match=r"^path=nowhere\.jsonl"):
        DocumentFile("nowhere.jsonl")
