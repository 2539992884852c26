from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bellman.app.prompt import summary_prompt
from bellman.corpus.base import Corpus, Document
from bellman.engines.simulated.engine import RunningSimulatedEngine
from bellman.errors import ConfigError, RunError
from bellman.responses.recorded import (
    RECORDED_RESPONSES,
    RecordedBank,
    write_recorded,
)

CORPUS = Corpus("tiny", tuple(Document(key, "A b.", ("A b.",), "C.") for key in "ab"), "none")


def metadata(**changes: Any) -> dict[str, Any]:
    return {
        "model": "a/model",
        "revision": "main",
        "prompt_template": "{document}\n\nAt most {words} words.",
        "decoding": {"temperature": 0},
        "corpus": "tiny",
        "text_digests": CORPUS.text_digests,
        "recorded_utc": "2026-01-01T00:00:00Z",
        **changes,
    }


def rows(document_ids: str = "ab") -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "document_id": key,
                "asked_words": asked,
                "text": f"{key} said",
                "words": 2,
                "output_tokens": asked * 2,
                "prompt_tokens": 30,
                "finish_reason": "length" if asked > 100 else "stop",
            }
            for key in document_ids
            for asked in (40, 160)
        ],
        schema=RECORDED_RESPONSES,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bank.parquet"
    write_recorded(rows(), metadata(), path)
    return path


def test_gives_back_what_was_recorded(file: Path) -> None:
    bank = RecordedBank(str(file)).open(CORPUS)
    response = bank.lookup("b", 160)
    assert (response.text, response.words, response.output_tokens) == ("b said", 2, 320)
    assert response.finish_reason == "length"
    assert bank.kind == "recorded from a/model"
    assert bank.metadata["decoding"] == {"temperature": 0}


def test_prompts_count_as_recorded_only_where_that_is_asked_for(file: Path) -> None:
    known = summary_prompt("A b.", 40)
    assert RecordedBank(str(file)).open(CORPUS).count_tokens(known) is None
    bank = RecordedBank(str(file), prompts_as_recorded=True).open(CORPUS)
    assert bank.count_tokens(known) == 30
    assert bank.count_tokens(summary_prompt("A b.", 41)) is None


def test_the_simulated_engine_counts_prompts_as_its_bank_does(file: Path) -> None:
    bank = RecordedBank(str(file), prompts_as_recorded=True).open(CORPUS)
    engine = RunningSimulatedEngine(ANY, bank)
    assert engine.count_tokens(summary_prompt("A b.", 160)) == 30
    assert engine.count_tokens("another prompt") is None


def test_a_part_of_the_corpus_will_do(file: Path) -> None:
    part = Corpus("tiny", CORPUS.documents[:1], "none")
    assert RecordedBank(str(file)).open(part).lookup("a", 40).output_tokens == 80


def test_a_part_that_was_cut_shorter_will_not_do(file: Path) -> None:
    part = Corpus("tiny", (Document("a", "A", ("A",), "C."),), "none")
    with pytest.raises(RunError, match=r"other texts of 1 documents, 'a'"):
        RecordedBank(str(file)).open(part)


def test_an_unrecorded_length_is_refused_with_those_that_are_there(file: Path) -> None:
    with pytest.raises(RunError, match=r"for 80 words \(it has 40, 160\)"):
        RecordedBank(str(file)).open(CORPUS).lookup("a", 80)
    with pytest.raises(RunError, match="lacks that document"):
        RecordedBank(str(file)).open(CORPUS).lookup("z", 40)


@pytest.mark.parametrize(
    ("document_ids", "changes", "message"),
    [
        ("ab", {"corpus": "other"}, "is over corpus other, not tiny"),
        ("a", {}, "lacks 1 documents of the corpus, 'b' among them"),
        ("ab", {"text_digests": CORPUS.text_digests | {"b": "0"}}, "other texts of 1 .* 'b'"),
    ],
)
def test_a_bank_over_something_else_is_refused(
    tmp_path: Path, document_ids: str, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "bank.parquet"
    write_recorded(rows(document_ids), metadata(**changes), path)
    with pytest.raises(RunError, match=message):
        RecordedBank(str(path)).open(CORPUS)


def test_what_is_no_bank_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^path=nowhere\.parquet"):
        RecordedBank("nowhere.parquet")
    path = tmp_path / "x.parquet"
    path.write_bytes(b"text")
    with pytest.raises(RunError, match="is no response bank"):
        RecordedBank(str(path)).open(CORPUS)
    pq.write_table(rows(), path)
    with pytest.raises(RunError, match="is no response bank"):
        RecordedBank(str(path)).open(CORPUS)
    with pytest.raises(ValueError, match="metadata lacks decoding"):
        write_recorded(rows(), {k: v for k, v in metadata().items() if k != "decoding"}, path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": None}, "row 3: text=None cannot be of an answer"),
        ({"document_id": None}, "row 3: document_id=None cannot be of an answer"),
        ({"output_tokens": None}, "row 3: output_tokens=None cannot be of an answer"),
        ({"output_tokens": -1}, "row 3: output_tokens=-1 cannot be of an answer"),
        ({"asked_words": 0}, "row 3: asked_words=0 cannot be of an answer"),
        ({"document_id": "a"}, "row 3: the answer of document a for 40 words is in row 1, too"),
    ],
)
def test_a_row_that_is_no_answer_is_named(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "bank.parquet"
    answers = rows().to_pylist()
    answers[2] |= change
    write_recorded(pa.Table.from_pylist(answers, RECORDED_RESPONSES), metadata(), path)
    with pytest.raises(RunError, match=rf"^{path}: {message}"):
        RecordedBank(str(path)).open(CORPUS)


def test_a_prompt_whose_tokens_no_server_reported_will_do(tmp_path: Path) -> None:
    path = tmp_path / "bank.parquet"
    answers = [row | {"prompt_tokens": None} for row in rows().to_pylist()]
    write_recorded(pa.Table.from_pylist(answers, RECORDED_RESPONSES), metadata(), path)
    assert RecordedBank(str(path)).open(CORPUS).lookup("a", 40).output_tokens == 80


def test_answers_to_be_concise_are_kept_apart_and_never_made_up(tmp_path: Path) -> None:
    path = tmp_path / "bank.parquet"
    write_recorded(rows(), metadata(), path)
    bank = RecordedBank(str(path)).open(CORPUS)
    assert not bank.answers_concise
    message = r"bank\.parquet has no answers to the prompt `be concise`: not measured; record them"
    with pytest.raises(RunError, match=message):
        bank.lookup("a", None)

    concise = [row | {"asked_words": None, "text": "short"} for row in rows().to_pylist()[::2]]
    table = pa.Table.from_pylist([*rows().to_pylist(), *concise], RECORDED_RESPONSES)
    write_recorded(table, metadata(), path)
    bank = RecordedBank(str(path), prompts_as_recorded=True).open(CORPUS)
    assert bank.answers_concise
    assert bank.lookup("a", None).text == "short"
    assert bank.lookup("a", 40).text == "a said"
    assert bank.length_compliance == {40: 2.0, 160: 2.0}
    assert bank.count_tokens(summary_prompt("A b.", None)) == 30


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("asked_words", pa.array(["forty"] * 4)),
        ("asked_words", pa.array([2**40] * 4)),
        ("asked_words", pa.array([0.5] * 4)),
        ("text", pa.array([[["a"]]] * 4)),
        ("text", pa.array([b"\xff"] * 4, pa.binary())),
    ],
)
def test_a_column_of_another_kind_is_one_line(tmp_path: Path, column: str, cells: pa.Array) -> None:
    path = tmp_path / "bank.parquet"
    write_recorded(rows(), metadata(), path)
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.schema.names.index(column), column, cells), path)
    with pytest.raises(RunError, match=rf"^{path} is no response bank \(.*$"):
        RecordedBank(str(path)).open(CORPUS)


@pytest.mark.parametrize("content", [b"[1]", b"{", b"\xff", b"[" * 100_000, b'{"text_digests": 1}'])
def test_metadata_of_another_kind_are_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bank.parquet"
    pq.write_table(rows().replace_schema_metadata({b"bellman": content}), path)
    with pytest.raises(RunError, match=rf"^{path} is no response bank \(.*$"):
        RecordedBank(str(path)).open(CORPUS)
