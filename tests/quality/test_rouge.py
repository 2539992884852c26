"""The scores are those of `rouge_score`, whose implementation is the reference here."""

import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer as Reference
from rouge_score.scoring import Score

from bellman.corpus.aclsum import AclSum
from bellman.quality.rouge import ROUGE_TYPES, RougeScorer
from bellman.quality.tokenizer import UnicodeTokenizer

WORDS = st.sampled_from(["the", "cat", "cats", "sat", "running", ".", "-", "7", "мир", "今天"])
LINES = st.lists(WORDS, max_size=15).map(" ".join)
TEXTS = st.lists(LINES, max_size=8).map("\n".join)


def assert_same(own: dict[str, Score], reference: dict[str, Score]) -> None:
    assert set(own) == set(reference)
    for kind, score in own.items():
        assert tuple(score) == pytest.approx(tuple(reference[kind]), abs=1e-12)


@settings(max_examples=100)
@given(TEXTS, TEXTS, st.booleans())
def test_equals_rouge_score_on_random_texts(reference: str, candidate: str, stem: bool) -> None:
    expected = Reference(ROUGE_TYPES, tokenizer=UnicodeTokenizer(stem)).score(reference, candidate)
    assert_same(RougeScorer(stem).score(reference, candidate), expected)


@pytest.mark.parametrize("stem", [False, True])
def test_equals_rouge_score_with_its_own_tokenizer_on_papers(stem: bool) -> None:
    own, reference = RougeScorer(stem), Reference(ROUGE_TYPES, use_stemmer=stem)
    for document in AclSum(limit_documents=6).load().documents:
        target = "".join(c if c.isascii() else " " for c in document.reference)
        sentences = random.Random(1).sample(document.sentences, 10)
        candidate = "\n".join("".join(c if c.isascii() else " " for c in s) for s in sentences)
        assert_same(own.score(target, candidate), reference.score(target, candidate))


@pytest.mark.parametrize(
    "text",
    [
        "The cat sat on the mat.\nIt was flat.",
        "Кошка сидела на ковре.\nОн был плоским.",
        "今天下雨。\n明天晴天。",
        "आज बारिश है।\nकल धूप होगी।",
        "اليوم ممطر\nوغدا مشمس",
        "Wir mögen Straßen.\nIl est là, à côté.",
    ],
)
def test_identical_texts_score_1_in_any_script(text: str) -> None:
    for score in RougeScorer(use_stemmer=True).score(text, text).values():
        assert tuple(score) == (1, 1, 1)


def test_accents_tell_words_apart() -> None:
    scorer = RougeScorer(use_stemmer=True)
    for score in scorer.score("mögen", "mägen").values():
        assert tuple(score) == (0, 0, 0)
    scores = scorer.score("là ça\nà ô", "ça là\no\u0302 a\u0300")  # the second line decomposed
    assert scores["rouge1"] == (1, 1, 1)
    assert scores["rougeLsum"] == (0.5, 0.5, 0.5)


KNOWN = {
    "rouge1": (4 / 7, 4 / 5, 2 / 3),
    "rouge2": (2 / 6, 2 / 4, 2 / 5),
    "rougeL": (2 / 7, 2 / 5, 1 / 3),
    "rougeLsum": (4 / 7, 4 / 5, 2 / 3),
}


def test_lines_are_the_sentences_of_lsum_alone() -> None:
    reference, candidate = "The cat sat.\nDogs ran.", "A dog ran far.\nThe cat slept."
    for scorer in (RougeScorer(use_stemmer=True), Reference(ROUGE_TYPES, use_stemmer=True)):
        assert_same(scorer.score(reference, candidate), {k: Score(*v) for k, v in KNOWN.items()})


@pytest.mark.parametrize("candidate", [".", "", " \n", "...\n.", "<n>", "😀 —", "\udc00"])
def test_a_text_without_words_scores_0(candidate: str) -> None:
    scorer = RougeScorer(use_stemmer=True)
    for score in (*scorer.score("A n word.", candidate).values(), *scorer.score(".", ".").values()):
        assert tuple(score) == (0, 0, 0)


def test_a_literal_newline_mark_is_a_line_break_and_no_word() -> None:
    scorer = RougeScorer(use_stemmer=True)
    assert scorer.score("a b\nc d", "c d<n>a b") == scorer.score("a b\nc d", "c d\na b")


def test_hand_counted() -> None:
    scores = RougeScorer(use_stemmer=False).score("the cat sat here", "the cat was here today")
    assert scores["rouge1"] == pytest.approx((3 / 5, 3 / 4, 2 / 3))
    assert scores["rouge2"] == pytest.approx((1 / 4, 1 / 3, 2 / 7))
    assert scores["rougeL"] == pytest.approx((3 / 5, 3 / 4, 2 / 3))


def test_a_thousand_sentences_do_not_recurse() -> None:
    generator = random.Random(0)
    sentences = [" ".join(generator.choices("abcdefghij", k=12)) for _ in range(1000)]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        scores = RougeScorer(use_stemmer=False).score(
            "\n".join(sentences[:60]), "\n".join(sentences)
        )
    finally:
        sys.setrecursionlimit(limit)
    assert scores["rougeLsum"].recall == 1
    assert scores["rougeL"].recall == 1
