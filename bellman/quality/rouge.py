"""ROUGE-1, 2, L and Lsum of tokenised texts, equal to `rouge_score` 0.1.2 and faster.

By how much: `benchmarks/rouge.py`. Source: Lin, "ROUGE: A Package for Automatic Evaluation of
Summaries", 2004, as implemented by `rouge_score`, whose score type and F-measure are used. Lsum
takes lines as sentences.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rouge_score.scoring import Score, fmeasure

from bellman.quality.lcs import lcs_indices, lcs_length, positions
from bellman.quality.tokenizer import LITERAL_NEWLINE, UnicodeTokenizer

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")


class TokenisedText:
    """A text's tokens by line, and what the scores need of them."""

    def __init__(self, text: str, tokenizer: UnicodeTokenizer) -> None:
        lines = text.replace(LITERAL_NEWLINE, "\n").split("\n")
        self.sentences = [tokens for tokens in map(tokenizer.tokenize, lines) if tokens]
        self.tokens = [token for sentence in self.sentences for token in sentence]
        self.unigrams = Counter(self.tokens)
        self.bigrams = Counter(zip(self.tokens, self.tokens[1:], strict=False))


class RougeScorer:
    """Scores candidates against references; references stay tokenised."""

    def __init__(self, use_stemmer: bool) -> None:
        self._tokenizer = UnicodeTokenizer(use_stemmer)
        self._reference = lru_cache(maxsize=4096)(self._tokenise)

    def score(self, reference: str, candidate: str) -> dict[str, Score]:
        """Return precision, recall and F1 by ROUGE type."""
        reference_text = self._reference(reference)
        candidate_text = self._tokenise(candidate)
        return {
            "rouge1": score_counts(reference_text.unigrams, candidate_text.unigrams),
            "rouge2": score_counts(reference_text.bigrams, candidate_text.bigrams),
            "rougeL": score_sequence(reference_text.tokens, candidate_text.tokens),
            "rougeLsum": score_summary(reference_text, candidate_text),
        }

    def _tokenise(self, text: str) -> TokenisedText:
        return TokenisedText(text, self._tokenizer)


def score_hits(hits: int, reference_length: int, candidate_length: int) -> Score:
    """Return the score of so many common units; an empty text scores 0."""
    precision = hits / max(candidate_length, 1)
    recall = hits / max(reference_length, 1)
    return Score(precision, recall, fmeasure(precision, recall))


def score_counts(reference: Counter[Any], candidate: Counter[Any]) -> Score:
    """Score n-grams by their clipped counts."""
    hits = (reference & candidate).total()
    return score_hits(hits, reference.total(), candidate.total())


def score_sequence(reference: Sequence[str], candidate: Sequence[str]) -> Score:
    """Score the longest common subsequence of the whole texts."""
    hits = lcs_length(reference, positions(candidate), len(candidate))
    return score_hits(hits, len(reference), len(candidate))


def score_summary(reference: TokenisedText, candidate: TokenisedText) -> Score:
    """Score the union, for each reference sentence, of its subsequences in candidate sentences.

    A token counts at most as often as the candidate has it.
    """
    sentences = [(positions(sentence), len(sentence)) for sentence in candidate.sentences]
    union: Counter[str] = Counter()
    for whole_sentence in reference.sentences:
        # Other tokens are in no subsequence, and most are such.
        sentence = [token for token in whole_sentence if token in candidate.unigrams]
        found: set[int] = set()
        for places, length in sentences:
            found.update(lcs_indices(sentence, places, length))
        union.update(sentence[index] for index in found)
    hits = (union & candidate.unigrams).total()
    return score_hits(hits, len(reference.tokens), len(candidate.tokens))
