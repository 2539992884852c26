"""Scores the distinct texts of a run against the references of their documents."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bellman.app.texts import text_id
from bellman.corpus.base import Corpus, Document
from bellman.corpus.sentences import split_sentences
from bellman.errors import RunError
from bellman.foreign_text import whole_characters
from bellman.quality.hidden import hidden
from bellman.quality.random_sentences import random_sentences
from bellman.quality.tokenizer import LITERAL_NEWLINE
from bellman.records import write_parquet
from bellman.schema import Whole, schema
from bellman.words import count_words

METRIC = Path(__file__).with_name("rouge_metric.py")
ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
PARTS = ("precision", "recall", "f1")
METADATA_KEY = b"bellman"
"""In the schema's metadata: the configuration and the version of rouge-score, as JSON."""

QUALITY = pa.schema(
    [
        ("text_id", pa.string()),
        ("document_id", pa.string()),
        ("words", pa.int32()),
        ("reference_words", pa.int32()),
        *(
            (f"{kind}_{part}", pa.float64())
            for kind in ROUGE_TYPES
            # f1_random: mean over the random texts; f1_ratio: f1 / f1_random, null where that is 0.
            for part in (*PARTS, "f1_random", "f1_ratio")
        ),
    ]
)


@schema
class RougeQuality:
    """How summaries are scored."""

    use_stemmer: bool
    """Porter stemming, as most published ROUGE figures for English have it."""
    random_draws: Whole
    """Random texts for each text, for `f1_random`; 0 leaves it out (null)."""
    seed: Whole
    """Of the random texts."""


def score_folder(folder: Path, corpus: Corpus, config: RougeQuality) -> None:
    """Score `texts.parquet` of a run folder and write `quality.parquet` (`QUALITY`) beside it."""
    texts = pq.read_table(folder / "texts.parquet", columns=["document_id", "text"]).to_pydict()
    pairs = zip(texts["document_id"], texts["text"], strict=True)
    table = pa.Table.from_pandas(score_texts(pairs, corpus, config), QUALITY, preserve_index=False)
    write_parquet(
        table.replace_schema_metadata({METADATA_KEY: json.dumps(made_with(config)).encode()}),
        folder / "quality.parquet",
    )


def made_with(config: RougeQuality) -> dict[str, object]:
    """Return what determines the scores of a text, for the metadata of `quality.parquet`."""
    return {"metric": "ROUGE", "rouge_score": version("rouge-score"), **asdict(config)}


def score_texts(
    pairs: Iterable[tuple[str, str]], corpus: Corpus, config: RougeQuality
) -> pd.DataFrame:
    """Score (document_id, text) pairs: a row, with the columns of `QUALITY`, per distinct pair.

    Raises `RunError` for a document that the corpus has not.
    """
    distinct = list(dict.fromkeys((name, whole_characters(text)) for name, text in pairs))
    documents = documents_of((document_id for document_id, _ in distinct), corpus)
    texts = [one_sentence_a_line(text) for _, text in distinct]
    words = [count_words(text) for text in texts]
    random_texts = [
        random_sentences(document.sentences, length, f"{config.seed} {document.document_id} {draw}")
        for draw in range(config.random_draws)
        for document, length in zip(documents, words, strict=True)
    ]
    references = [whole_characters(document.reference) for document in documents]
    scores = rouge(texts + random_texts, references * (1 + config.random_draws), config.use_stemmer)
    frame = pd.DataFrame(
        {
            "text_id": [text_id(*pair) for pair in distinct],
            "document_id": [document.document_id for document in documents],
            "words": words,
            "reference_words": [count_words(reference) for reference in references],
        }
    )
    for kind in ROUGE_TYPES:
        for part in PARTS:
            frame[f"{kind}_{part}"] = scores[f"{kind}_{part}"][: len(texts)]
        drawn = np.reshape(scores[f"{kind}_f1"][len(texts) :], (config.random_draws, len(texts)))
        f1_random = drawn.mean(axis=0) if config.random_draws else np.full(len(texts), np.nan)
        frame[f"{kind}_f1_random"] = f1_random
        frame[f"{kind}_f1_ratio"] = frame[f"{kind}_f1"] / np.where(f1_random > 0, f1_random, np.nan)
    return frame


def rouge(
    predictions: Sequence[str], references: Sequence[str], use_stemmer: bool
) -> dict[str, list[float]]:
    """Score pairs with the project's `evaluate` metric, loaded from its file."""
    if not predictions:  # `evaluate` refuses none
        return {f"{kind}_{part}": [] for kind in ROUGE_TYPES for part in PARTS}
    result: dict[str, list[float]] = load_metric().compute(
        predictions=predictions, references=references, use_stemmer=use_stemmer, aggregate=False
    )
    return result


def load_metric(file: Path = METRIC) -> Any:
    """Load a metric from its file; raises `RunError` where `evaluate` cannot keep its copy."""
    try:
        with hidden("transformers", "scipy.stats"):  # for evaluators of models; metrics need none
            import evaluate  # noqa: PLC0415 - most of a second itself, for scoring only

        return evaluate.load(str(file), keep_in_memory=True)
    except OSError as error:
        raise RunError(
            f"the package evaluate cannot write its folder ({error}): set HF_HOME to one it can"
        ) from None


def documents_of(document_ids: Iterable[str], corpus: Corpus) -> list[Document]:
    """Return the corpus's documents of those ids."""
    documents = {document.document_id: document for document in corpus.documents}
    try:
        return [documents[document_id] for document_id in document_ids]
    except KeyError as error:
        raise RunError(
            f"corpus {corpus.name} has no document {error}: score a run with its own corpus"
        ) from None


def one_sentence_a_line(text: str) -> str:
    """Put each sentence on a line of its own, as ROUGE-Lsum expects; a line ends a sentence, too.

    `rouge_score` takes lines as sentences and leaves splitting to its caller, who mostly does it by
    nltk; here by the rules that split the corpora, so that references and answers are cut alike.
    """
    lines = text.replace(LITERAL_NEWLINE, "\n").splitlines()
    return "\n".join(sentence for line in lines for sentence in split_sentences(line))
