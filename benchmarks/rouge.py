"""ROUGE of this project beside `rouge_score` on the same pairs: python -m benchmarks.rouge."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from rouge_score.rouge_scorer import RougeScorer as ReferenceScorer

from bellman.corpus.aclsum import AclSum
from bellman.quality.random_sentences import random_sentences
from bellman.quality.rouge import ROUGE_TYPES, RougeScorer

WORDS = (300, 150, 75, 40)
DOCUMENTS = 10


def main() -> None:
    """Print CPU seconds a pair, and how many times as fast this project's scorer is."""
    documents = AclSum(limit_documents=DOCUMENTS).load().documents
    pairs = [
        (document.reference, random_sentences(document.sentences, words, "0"))
        for document in documents
        for words in WORDS
    ]
    print(f"{len(pairs)} pairs, ROUGE-1, 2, L and Lsum with stemming; CPU ms a pair")
    reference_ms = cpu_ms(ReferenceScorer(ROUGE_TYPES, use_stemmer=True).score, pairs)
    own_ms = cpu_ms(RougeScorer(use_stemmer=True).score, pairs)
    print(f"rouge_score {reference_ms:.2f}   bellman {own_ms:.2f}   {reference_ms / own_ms:.0f} x")


def cpu_ms(score: Callable[[str, str], Any], pairs: Sequence[tuple[str, str]]) -> float:
    """Return the CPU time of scoring all pairs once, a pair, in milliseconds."""
    start_s = time.process_time()
    for reference, candidate in pairs:
        score(reference, candidate)
    return (time.process_time() - start_s) / len(pairs) * 1000


if __name__ == "__main__":
    main()
