"""ROUGE-1, 2, L and Lsum of tokenised texts, equal to `rouge_score` 0.1.2 and faster.

By how much: `benchmarks/rouge.py`. Source: Lin, "ROUGE: A Package for Automatic Evaluation of
Summaries", 2004, as implemented by `rouge_score`, whose score type and F-measure are used. Lsum
takes lines as sentences.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from rouge_score.scoring import Score, fmeasure

from bellman.quality.lcs import lcs_indices, lcs_length, positions
from bellman.quality.tokenizer import LITERAL_NEWLINE, UnicodeTokenizer

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")


class TokenisedText:
    """A text's tokens by line, and what the scores need of them."""

    def __init__(self, text: str, tokenize: Callable[[str], tuple[str, ...]]) -> None:
        lines = text.replace(LITERAL_NEWLINE, "\n").split("\n")
        self.sentences = [tokens for line in lines if (tokens := tokenize(line))]
        self.tokens = [token for sentence in self.sentences for token in sentence]
        self.unigrams = Counter(self.tokens)
        self.bigrams = Counter(zip(self.tokens, self.tokens[1:], strict=False))

    @cached_property
    def positions(self) -> dict[str, int]:
        """The places of each token."""
        return positions(self.tokens)


class RougeScorer:
    """Scores candidates against references; references stay tokenised.

    Candidates of one document share sentences, so that what is found of a sentence stays, too.
    """

    def __init__(self, use_stemmer: bool) -> None:
        tokenizer = UnicodeTokenizer(use_stemmer)
        self._tokenize = lru_cache(maxsize=16384)(lambda line: tuple(tokenizer.tokenize(line)))
        self._reference = lru_cache(maxsize=4096)(self._tokenise)
        self._common_places = lru_cache(maxsize=16384)(common_places)

    def score(self, reference: str, candidate: str) -> dict[str, Score]:
        """Return precision, recall and F1 by ROUGE type."""
        reference_text = self._reference(reference)
        candidate_text = self._tokenise(candidate)
        return {
            "rouge1": score_counts(reference_text.unigrams, candidate_text.unigrams),
            "rouge2": score_counts(reference_text.bigrams, candidate_text.bigrams),
            "rougeL": score_sequence(reference_text, candidate_text),
            "rougeLsum": self._score_summary(reference_text, candidate_text),
        }

    def _tokenise(self, text: str) -> TokenisedText:
        return TokenisedText(text, self._tokenize)

    def _score_summary(self, reference: TokenisedText, candidate: TokenisedText) -> Score:
        """Score the union, for each reference sentence, of its subsequences in candidate sentences.

        A token counts at most as often as the candidate has it.
        """
        found: set[int] = set()
        for sentence in candidate.sentences:
            found |= self._common_places(reference, sentence)
        union = Counter(reference.tokens[place] for place in found)
        hits = count_common(union, candidate.unigrams)
        return score_hits(hits, len(reference.tokens), len(candidate.tokens))


def score_hits(hits: int, reference_length: int, candidate_length: int) -> Score:
    """Return the score of so many common units; an empty text scores 0."""
    precision = hits / max(candidate_length, 1)
    recall = hits / max(reference_length, 1)
    return Score(precision, recall, fmeasure(precision, recall))


def score_counts(reference: Counter[Any], candidate: Counter[Any]) -> Score:
    """Score n-grams by their clipped counts."""
    return score_hits(count_common(reference, candidate), reference.total(), candidate.total())


def score_sequence(reference: TokenisedText, candidate: TokenisedText) -> Score:
    """Score the longest common subsequence of the whole texts."""
    hits = lcs_length(candidate.tokens, reference.positions, len(reference.tokens))
    return score_hits(hits, len(reference.tokens), len(candidate.tokens))


def common_places(reference: TokenisedText, sentence: Sequence[str]) -> frozenset[int]:
    """Return the places in a reference of what each of its sentences shares with a sentence."""
    places, length = positions(sentence), len(sentence)
    found: list[int] = []
    start = 0
    for own in reference.sentences:
        found += [start + index for index in lcs_indices(own, places, length)]
        start += len(own)
    return frozenset(found)


def count_common(one: Counter[Any], other: Counter[Any]) -> int:
    """Return how many units two texts have in common, each as often as both have it."""
    return sum(min(one[unit], other[unit]) for unit in one.keys() & other.keys())
