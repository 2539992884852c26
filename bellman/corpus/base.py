"""Documents to summarize, with their reference summaries."""

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Document:
    """One document of the corpus."""

    document_id: str
    text: str
    """Sentences of a paragraph separated by one space, paragraphs by a blank line."""
    sentences: tuple[str, ...]
    reference: str
    """The human summary; its sentences separated by newlines (what ROUGE-Lsum splits at)."""
    question: str | None = None
    """What is asked about the text; None: for a summary. The reference answers it then."""

    @property
    def text_digest(self) -> str:
        """First half of the SHA-256 of the text: what an answer was recorded to."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Corpus:
    """Documents in a fixed order, and what was left out on the way."""

    name: str
    documents: tuple[Document, ...]
    licence: str
    left_out: dict[str, int] = field(default_factory=dict)
    """Counts by reason: `empty document`, `empty reference`, `before 2016`..."""

    @property
    def digest(self) -> str:
        """SHA-256 over ids, texts and references in order: part of the run id."""
        digest = hashlib.sha256()
        for document in self.documents:
            parts = [document.document_id, document.text, document.reference]
            if document.question is not None:
                parts.append(document.question)
            for part in parts:
                digest.update(part.encode() + b"\0")
        return digest.hexdigest()

    @property
    def text_digests(self) -> dict[str, str]:
        """The digest of every document's text, by its id."""
        return {document.document_id: document.text_digest for document in self.documents}
