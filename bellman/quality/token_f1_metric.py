"""Token F1 as an `evaluate` metric: `evaluate.load("bellman/quality/token_f1_metric.py")`.

The F1 of the `squad` metric (Rajpurkar et al., "SQuAD", EMNLP 2016), pair by pair, with its
precision and recall: lower case, without punctuation and the articles a, an, the, then the common
tokens, each counted as often as both have it. Comes with the project: the Hub need not be reached.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

import datasets
import evaluate

CITATION = "Rajpurkar et al. SQuAD: 100,000+ Questions for Machine Comprehension. EMNLP 2016."
INPUTS = """
Args:
    predictions: answers.
    references: one for each prediction.
Returns:
    `token_f1`, `token_precision`, `token_recall`: lists, in [0, 1].
"""
ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def tokens(text: str) -> list[str]:
    """Return the tokens that count."""
    return ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()


def score(prediction: str, reference: str) -> tuple[float, float, float]:
    """Return F1, precision and recall; 0 where nothing is common."""
    own, wanted = tokens(prediction), tokens(reference)
    common = (Counter(own) & Counter(wanted)).total()
    if common == 0:
        return 0.0, 0.0, 0.0
    precision, recall = common / len(own), common / len(wanted)
    return 2 * precision * recall / (precision + recall), precision, recall


class TokenF1(evaluate.Metric):  # type: ignore[misc]
    """Token F1, precision, recall."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=__doc__ or "",
            citation=CITATION,
            inputs_description=INPUTS,
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(
        self, predictions: Sequence[str], references: Sequence[str]
    ) -> dict[str, list[float]]:
        scores = [score(*pair) for pair in zip(predictions, references, strict=True)]
        names = ("token_f1", "token_precision", "token_recall")
        return {name: [one[place] for one in scores] for place, name in enumerate(names)}
