"""The distinct texts of a run: each is kept, counted and later scored once."""

import hashlib
from dataclasses import dataclass

from bellman.foreign_text import whole_characters
from bellman.records import JsonLinesWriter, TextRecord
from bellman.words import count_words


@dataclass(frozen=True, slots=True)
class StoredText:
    """A distinct (document, text) pair."""

    text_id: str
    document_id: str
    text: str
    words: int


def text_id(document_id: str, text: str) -> str:
    """Return the pair's key: 16 hex digits of a SHA-256."""
    return hashlib.sha256(f"{document_id}\0{text}".encode()).hexdigest()[:16]


class TextStore:
    """Keeps distinct texts in memory and appends each to texts.jsonl as it first appears."""

    def __init__(self, writer: JsonLinesWriter) -> None:
        self._writer = writer
        self._stored: dict[tuple[str, str], StoredText] = {}

    def add(self, document_id: str, text: str) -> StoredText:
        """Return the stored pair, new or known."""
        as_it_came = (document_id, text)
        stored = self._stored.get(as_it_came)
        if stored is None:
            text = whole_characters(text)
            stored = self._stored.get((document_id, text)) or self._keep(document_id, text)
            self._stored[as_it_came] = stored
        return stored

    def _keep(self, document_id: str, text: str) -> StoredText:
        identity = text_id(document_id, text)
        stored = StoredText(identity, document_id, text, count_words(text))
        self._stored[document_id, text] = stored
        self._writer.write(TextRecord(identity, document_id, text))
        return stored
