"""ROUGE as an `evaluate` metric: `evaluate.load("bellman/quality/rouge_metric.py")`.

Differs from the `rouge` metric of the Hub where that one misleads: every score comes with its
precision and recall, the mean is the plain mean with a seeded bootstrap interval, texts of any
script are scored, and thousand-sentence texts are cheap.
"""

from collections.abc import Sequence

import datasets
import evaluate
import numpy as np

from bellman.quality.rouge import ROUGE_TYPES, RougeScorer

CITATION = "Lin, Chin-Yew. ROUGE: A Package for Automatic Evaluation of Summaries. ACL 2004."
INPUTS = """
Args:
    predictions: summaries; sentences on lines of their own (ROUGE-Lsum).
    references: one for each prediction, likewise.
    use_stemmer: Porter stemming of words of four letters and more.
    aggregate: the mean over pairs with its interval, instead of a list.
    seed: of the bootstrap.
Returns:
    `rouge1_f1`, `rouge1_precision`, `rouge1_recall`, likewise rouge2, rougeL and rougeLsum: lists,
    or plain means with `rouge1_f1_low` and `rouge1_f1_high` beside them.
"""
PARTS = {"precision": "precision", "recall": "recall", "f1": "fmeasure"}
RESAMPLES = 1000
COVERAGE_PERCENT = 95


class Rouge(evaluate.Metric):  # type: ignore[misc]
    """ROUGE-1, 2, L, Lsum: precision, recall, F1."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=__doc__ or "",
            citation=CITATION,
            inputs_description=INPUTS,
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[str],
        use_stemmer: bool = True,
        aggregate: bool = True,
        seed: int = 0,
    ) -> dict[str, list[float]] | dict[str, float]:
        scorer = RougeScorer(use_stemmer)
        pairs = zip(references, predictions, strict=True)
        scores = [scorer.score(reference, prediction) for reference, prediction in pairs]
        lists = {
            f"{kind}_{name}": [getattr(score[kind], attribute) for score in scores]
            for kind in ROUGE_TYPES
            for name, attribute in PARTS.items()
        }
        if not aggregate:
            return lists
        return {
            name + suffix: value
            for name, values in lists.items()
            for suffix, value in mean_with_interval(values, seed).items()
        }


def mean_with_interval(values: Sequence[float], seed: int) -> dict[str, float]:
    """Return the plain mean ("") and the 95 % percentile bootstrap interval (`_low`, `_high`)."""
    sample = np.asarray(values, dtype=float)
    generator = np.random.default_rng(seed)
    means = [generator.choice(sample, sample.size).mean() for _ in range(RESAMPLES)]
    tail = (100 - COVERAGE_PERCENT) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return {"": float(sample.mean()), "_low": float(low), "_high": float(high)}
