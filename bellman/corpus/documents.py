"""Builds a corpus from the rows of a data set: one document a row."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bellman.corpus.base import Corpus, Document
from bellman.corpus.cells import cell_id, cell_text
from bellman.corpus.sentences import split_paragraphs
from bellman.errors import ConfigError, RunError
from bellman.row_files.text import shown

EMPTY_DOCUMENT = "empty document"
EMPTY_REFERENCE = "empty reference"


def document_from_text(document_id: str, text: str, reference: str) -> Document:
    """Split plain text into paragraphs and sentences and normalize its spacing."""
    paragraphs = split_paragraphs(text)
    return Document(
        document_id=document_id,
        text="\n\n".join(" ".join(sentences) for sentences in paragraphs),
        sentences=tuple(sentence for sentences in paragraphs for sentence in sentences),
        reference="\n".join(
            sentence for sentences in split_paragraphs(reference) for sentence in sentences
        ),
    )


def corpus_from_documents(
    name: str,
    licence: str,
    documents: Iterable[Document],
    limit_documents: int | None,
    left_out: Mapping[str, int] | None = None,
) -> Corpus:
    """Keep the documents that have a text and a reference, in order, up to `limit_documents`.

    Documents after the limit are not looked at. Raises `ConfigError` when none is left or an id
    comes twice.
    """
    counts = Counter(left_out or {})
    kept: dict[str, Document] = {}
    for document in documents:
        if limit_documents is not None and len(kept) == limit_documents:
            break
        if document.document_id in kept:
            raise ConfigError("corpus.document_id", document.document_id, "must be unique")
        if not document.text:
            counts[EMPTY_DOCUMENT] += 1
        elif not document.reference:
            counts[EMPTY_REFERENCE] += 1
        else:
            kept[document.document_id] = document
    if not kept:
        why = ", ".join(f"{count} {reason}" for reason, count in counts.items()) or "no rows"
        raise ConfigError("corpus", name, f"must have at least one document; left out: {why}")
    return Corpus(name, tuple(kept.values()), licence, dict(counts))


def documents_from_rows(
    rows: Iterable[tuple[str, Sequence[Any]]],
    document_column: str,
    summary_column: str,
    id_column: str | None,
) -> Iterator[Document]:
    """Read rows, (place, document, summary and id), into documents; a null is an empty text.

    Without an id column the id is the row's number from 0. Raises `RunError` with place and column.
    """
    places: dict[str, str] = {}
    for number, (place, (document, summary, *names)) in enumerate(rows):
        document_id = cell_id(names[0], place, id_column) if id_column else str(number)
        if document_id in places:
            raise RunError(
                f"{place}: {id_column}={shown(document_id)} is the id of {places[document_id]}, "
                "too, must be unique"
            )
        places[document_id] = place
        yield document_from_text(
            document_id,
            cell_text(document, place, document_column) or "",
            cell_text(summary, place, summary_column) or "",
        )


def wanted_columns(document_column: str, summary_column: str, id_column: str | None) -> list[str]:
    """Return the columns in the order that `documents_from_rows` takes their values in."""
    return [document_column, summary_column, *([] if id_column is None else [id_column])]
