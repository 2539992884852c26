"""The prompts of a run: each distinct (document, asked words) is written and counted once."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bellman.app.prompt import document_prompt
from bellman.corpus.base import Document
from bellman.words import count_words


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt and its length: counted by the engine's tokenizer, else estimated from words."""

    text: str
    tokens: int
    document_tokens: int
    """Those of the document, which stands first, by its share of the words."""


class PromptBook:
    """Writes prompts for documents by id."""

    def __init__(
        self,
        documents: Mapping[str, Document],
        count_tokens: Callable[[str], int | None],
        words_per_token: float,
    ) -> None:
        self._documents = documents
        self._count_tokens = count_tokens
        self._words_per_token = words_per_token
        self._prompts: dict[tuple[str, int | None], Prompt] = {}

    def prompt(self, document_id: str, asked_words: int | None) -> Prompt:
        """Return the prompt about the document (`bellman.app.prompt.document_prompt`)."""
        key = (document_id, asked_words)
        prompt = self._prompts.get(key)
        if prompt is None:
            document = self._documents[document_id]
            text = document_prompt(document, asked_words)
            words = count_words(text)
            tokens = self._count_tokens(text)
            if tokens is None:
                tokens = math.ceil(words / self._words_per_token)
            document_tokens = tokens * count_words(document.text) // words
            prompt = self._prompts[key] = Prompt(text, tokens, document_tokens)
        return prompt
