"""Scores the distinct answers of a run against the references of their questions, by token F1."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bellman.app.texts import text_id
from bellman.corpus.base import Corpus
from bellman.foreign_text import whole_characters
from bellman.quality.score import METADATA_KEY, documents_of, load_metric
from bellman.records import write_parquet
from bellman.schema import schema
from bellman.words import count_words

METRIC = Path(__file__).with_name("token_f1_metric.py")
NAMES = ("token_f1", "token_precision", "token_recall")
QUALITY = pa.schema(
    [
        ("text_id", pa.string()),
        ("document_id", pa.string()),
        ("words", pa.int32()),
        ("reference_words", pa.int32()),
        *((name, pa.float64()) for name in NAMES),
    ]
)


@schema
class TokenF1Quality:
    """How answers to questions are scored."""


def made_with(config: TokenF1Quality) -> dict[str, object]:
    """Return what determines the scores of a text, for the metadata of `quality.parquet`."""
    return {"metric": "token F1", **asdict(config)}


def score_folder(folder: Path, corpus: Corpus, config: TokenF1Quality) -> None:
    """Score `texts.parquet` of a run folder and write `quality.parquet` (`QUALITY`) beside it."""
    texts = pq.read_table(folder / "texts.parquet", columns=["document_id", "text"]).to_pydict()
    frame = score_texts(zip(texts["document_id"], texts["text"], strict=True), corpus)
    table = pa.Table.from_pandas(frame, QUALITY, preserve_index=False)
    content = json.dumps(made_with(config)).encode()
    write_parquet(
        table.replace_schema_metadata({METADATA_KEY: content}), folder / "quality.parquet"
    )


def score_texts(pairs: Iterable[tuple[str, str]], corpus: Corpus) -> pd.DataFrame:
    """Score (document_id, text) pairs: a row per distinct pair; raises `RunError`."""
    distinct = list(dict.fromkeys((name, whole_characters(text)) for name, text in pairs))
    documents = documents_of((document_id for document_id, _ in distinct), corpus)
    references = [whole_characters(document.reference) for document in documents]
    answers = [text for _, text in distinct]
    scores: dict[str, list[float]] = {name: [] for name in NAMES}
    if distinct:  # `evaluate` refuses none
        scores = load_metric(METRIC).compute(predictions=answers, references=references)
    return pd.DataFrame(
        {
            "text_id": [text_id(*pair) for pair in distinct],
            "document_id": [document.document_id for document in documents],
            "words": [count_words(answer) for answer in answers],
            "reference_words": [count_words(reference) for reference in references],
            **{name: scores[name] for name in NAMES},
        }
    )
