"""Token F1: known answers, the metric through `evaluate`, and scores of a whole folder's texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.corpus.base import Corpus, Document
from bellman.quality.score import load_metric
from bellman.quality.token_f1 import METRIC, TokenF1Quality, made_with, score_texts


def score(prediction: str, reference: str) -> tuple[float, float, float]:
    """Import the metric where it is used: `evaluate` loads PyTorch where there is one."""
    from bellman.quality.token_f1_metric import score

    return score(prediction, reference)


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("The cat sat.", "a cat SAT", (1.0, 1.0, 1.0)),
        ("the dog", "a cat", (0.0, 0.0, 0.0)),
        ("", "a cat", (0.0, 0.0, 0.0)),
        # cat sat on mat against cat on mat mat: three common of four and four.
        ("cat sat on the mat", "cat on mat, mat", (0.75, 0.75, 0.75)),
        ("one two three four", "one two", (2 / 3, 0.5, 1.0)),
    ],
)
def test_known_answers(prediction, reference, expected):
    assert score(prediction, reference) == pytest.approx(expected)


@given(st.text(), st.text())
def test_it_is_a_share_and_symmetric_but_for_precision_and_recall(one, other):
    f1, precision, recall = score(one, other)
    assert 0 <= f1 <= 1
    assert score(other, one) == pytest.approx((f1, recall, precision))


def test_evaluate_loads_it_from_the_projects_file():
    metric = load_metric(METRIC)
    found = metric.compute(predictions=["a cat", "dog"], references=["cat", "cat"])
    assert found == {
        "token_f1": [1.0, 0.0],
        "token_precision": [1.0, 0.0],
        "token_recall": [1.0, 0.0],
    }


def test_each_distinct_answer_is_scored_once_against_its_question():
    documents = (
        Document("p#outcome", "A text.", ("A text.",), "they won", "What came of it?"),
        Document("p#challenge", "A text.", ("A text.",), "it was hard", "What was hard?"),
    )
    frame = score_texts(
        [("p#outcome", "they won"), ("p#challenge", "they won"), ("p#outcome", "they won")],
        Corpus("c", documents, "none"),
    )
    assert frame["token_f1"].tolist() == [1.0, 0.0]
    assert frame["reference_words"].tolist() == [2, 3]
    assert made_with(TokenF1Quality()) == {"metric": "token F1"}
    assert score_texts([], Corpus("c", documents, "none")).empty
