"""The stand-in for a recorded bank: answers are the document's own leading sentences.

Its lengths obey the request as well as configured, its ROUGE is that of the lead baseline: both
say nothing about a model.
"""

import hashlib
import math
from collections.abc import Sequence
from statistics import NormalDist

from bellman.corpus.base import Corpus
from bellman.errors import RunError
from bellman.responses.base import NO_CONCISE, Response
from bellman.schema import NotNegative, Positive, Whole, schema
from bellman.words import count_words


@schema
class ExtractiveBank:
    """Leading sentences up to a drawn number of words W.

    W = asked words x length_ratio x exp(length_spread x z), z standard normal, drawn from (seed,
    document, asked words). A first sentence longer than W is cut at W words.
    """

    length_ratio: Positive
    """Median of W / asked words; 1 = obeys on the median."""
    length_spread: NotNegative
    """Standard deviation of ln(W / asked words); 0 = obeys exactly."""
    tokens_per_word: Positive
    """Output tokens a word; one more token ends the answer."""
    seed: Whole

    def open(self, corpus: Corpus) -> "LeadingSentences":
        """Return the bank over the corpus's documents."""
        return LeadingSentences(self, corpus)


class LeadingSentences:
    """An `ExtractiveBank` over one corpus; each answer is made at its first lookup."""

    kind = "extractive stand-in"
    length_compliance = None
    answers_concise = False

    def __init__(self, config: ExtractiveBank, corpus: Corpus) -> None:
        self._config = config
        self._corpus_name = corpus.name
        self._sentences = {
            document.document_id: document.sentences for document in corpus.documents
        }
        self._responses: dict[tuple[str, int], Response] = {}

    def lookup(self, document_id: str, asked_words: int | None) -> Response:
        """Return the answer; raises `RunError` for a document the corpus has not.

        And where no number of words is asked for: how concise a model is, is not to be invented.
        """
        if asked_words is None:
            raise RunError(f"the {self.kind} {NO_CONCISE}")
        key = (document_id, asked_words)
        response = self._responses.get(key)
        if response is None:
            response = self._responses[key] = self._extract(document_id, asked_words)
        return response

    def count_tokens(self, text: str) -> int | None:
        """Return None: no model wrote these answers, and none read the prompts."""
        return None

    def _extract(self, document_id: str, asked_words: int) -> Response:
        sentences = self._sentences.get(document_id)
        if sentences is None:
            raise RunError(
                f"the response bank has no document {document_id!r}: it is made of corpus "
                f"{self._corpus_name}, which must be the one the requests come from"
            )
        text = lead(sentences, self._target_words(document_id, asked_words))
        words = count_words(text)
        tokens = math.ceil(words * self._config.tokens_per_word) + 1
        return Response(text, words, tokens, "stop")

    def _target_words(self, document_id: str, asked_words: int) -> int:
        config = self._config
        z = standard_normal(config.seed, document_id, asked_words)
        ratio = config.length_ratio * math.exp(config.length_spread * z)
        return max(1, round(asked_words * ratio))


def lead(sentences: Sequence[str], words: int) -> str:
    """Return the leading sentences that fit in `words`; at least `words` words of the first."""
    taken: list[str] = []
    left = words
    for sentence in sentences:
        length = count_words(sentence)
        if length > left:
            break
        taken.append(sentence)
        left -= length
    if not taken:
        return " ".join(sentences[0].split()[:words])
    return " ".join(taken)


def standard_normal(*key: object) -> float:
    """Draw a standard normal number that depends on the key alone."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    # 53 bits, shifted off 0 so that the quantile is finite.
    uniform = ((int.from_bytes(digest[:8]) >> 11) + 0.5) / 2**53
    return NormalDist().inv_cdf(uniform)
