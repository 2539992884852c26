import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.corpus.base import Corpus, Document
from bellman.errors import ConfigError, RunError
from bellman.responses.extractive import ExtractiveBank, lead, standard_normal
from bellman.words import count_words

SENTENCES = tuple(" ".join([f"w{number}"] * 10) for number in range(100))


def corpus_of(*document_ids: str, sentences: tuple[str, ...] = SENTENCES) -> Corpus:
    documents = (Document(key, " ".join(sentences), sentences, "Short.") for key in document_ids)
    return Corpus("repetitive", tuple(documents), "none")


def exact() -> ExtractiveBank:
    return ExtractiveBank(length_ratio=1.0, length_spread=0.0, tokens_per_word=1.5, seed=0)


def test_whole_leading_sentences_that_fit() -> None:
    response = exact().open(corpus_of("a")).lookup("a", 39)
    assert response.text == " ".join(SENTENCES[:3])
    assert (response.words, response.output_tokens) == (30, 46)
    assert response.finish_reason == "stop"


def test_a_first_sentence_that_is_too_long_is_cut() -> None:
    assert exact().open(corpus_of("a")).lookup("a", 4).text == "w0 w0 w0 w0"


def test_a_short_document_is_given_whole() -> None:
    assert exact().open(corpus_of("a")).lookup("a", 5000).words == 1000


def test_ratio_moves_the_median_and_spread_the_scatter() -> None:
    ids = [f"d{number}" for number in range(1500)]
    one_word_sentences = ("word",) * 500
    bank = ExtractiveBank(0.8, 0.2, 1.3, seed=3).open(corpus_of(*ids, sentences=one_word_sentences))
    logs = [math.log(bank.lookup(key, 200).words / 200) for key in ids]
    assert statistics.median(logs) == pytest.approx(math.log(0.8), abs=0.03)
    assert statistics.stdev(logs) == pytest.approx(0.2, rel=0.08)


def test_answers_depend_on_seed_document_and_length_alone() -> None:
    config = ExtractiveBank(1.0, 0.3, 1.3, seed=1)
    first, second = config.open(corpus_of("a", "b")), config.open(corpus_of("b", "a"))
    keys = [(document, words) for document in "ab" for words in (50, 100, 200)]
    assert [first.lookup(*key) for key in keys] == [second.lookup(*key) for key in reversed(keys)][
        ::-1
    ]
    other = ExtractiveBank(1.0, 0.3, 1.3, seed=2).open(corpus_of("a", "b"))
    assert [first.lookup(*key) for key in keys] != [other.lookup(*key) for key in keys]


def test_says_that_it_is_a_stand_in_and_knows_its_corpus() -> None:
    bank = exact().open(corpus_of("a"))
    assert bank.kind == "extractive stand-in"
    with pytest.raises(RunError, match="no document 'z'"):
        bank.lookup("z", 10)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ((0.0, 0.1, 1.3, 0), r"^length_ratio=0"),
        ((1.0, -0.1, 1.3, 0), r"^length_spread=-0\.1"),
        ((1.0, 0.1, 0.0, 0), r"^tokens_per_word=0"),
    ],
)
def test_ranges(values: tuple[float, float, float, int], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        ExtractiveBank(*values)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20), st.integers(1, 200))
def test_never_longer_than_asked_and_never_empty(lengths: list[int], words: int) -> None:
    sentences = [" ".join(["w"] * length) for length in lengths]
    assert 1 <= count_words(lead(sentences, words)) <= words


def test_draws_are_standard_normal() -> None:
    draws = [standard_normal(0, "document", number) for number in range(4000)]
    assert statistics.mean(draws) == pytest.approx(0, abs=0.05)
    assert statistics.stdev(draws) == pytest.approx(1, abs=0.03)
