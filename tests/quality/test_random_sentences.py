from hypothesis import given
from hypothesis import strategies as st

from bellman.quality.random_sentences import random_sentences
from bellman.words import count_words

SENTENCES = [f"s{number} " + "x " * number for number in range(1, 9)]
TOTAL_WORDS = sum(map(count_words, SENTENCES))


@given(st.integers(0, 100), st.text(max_size=5))
def test_has_exactly_so_many_words(words: int, key: str) -> None:
    text = random_sentences(SENTENCES, words, key)
    assert count_words(text) == min(words, TOTAL_WORDS)
    lines = text.split("\n") if text else []
    assert len(set(lines)) == len(lines)
    whole = {" ".join(sentence.split()) for sentence in SENTENCES}
    assert set(lines[:-1]) <= whole


def test_a_longer_text_of_the_same_draw_begins_alike() -> None:
    assert random_sentences(SENTENCES, 40, "a").startswith(random_sentences(SENTENCES, 15, "a"))


def test_draws_differ_by_key() -> None:
    assert len({random_sentences(SENTENCES, 10, str(key)) for key in range(20)}) > 5
