import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.corpus.aclsum import AclSum
from bellman.corpus.sentences import split_paragraphs, split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. Smith met Mr. J. Doe on Jan. 5 at 3.30 p.m. in Ghent.", "It rained."],
        ["We follow Xu et al. (2015), see Fig. 3 and Sec. 2.", "Results differ."],
        ["It works, e.g. BLEU rises by 0.8 points.", "Costs do not."],
        ["He moved to the U.S. in 1990.", "He stayed."],
        ['"Stop!" he said.', '"Why?"', "Nobody knew."],
        ["What is a unit?", "A word (or a part of one).", "[See below.]", "Yes!"],
        ["1. First we train.", "2. Then we test."],
        ["He and I.", "She came too."],
        ["Wait... for it.", "Now."],
    ],
)
def test_known_sentences(sentences: list[str]) -> None:
    assert list(split_sentences(" ".join(sentences))) == sentences


def test_chinese_and_hindi_sentences() -> None:
    assert split_sentences("今天下雨。明天晴天！真的吗？") == (
        "今天下雨。",
        "明天晴天！",
        "真的吗？",
    )
    assert split_sentences("यह एक है। वह दो है।") == ("यह एक है।", "वह दो है।")


def test_a_line_break_after_a_full_stop_ends_a_sentence() -> None:
    assert split_sentences("he left .\nnobody saw\nhim go .") == (
        "he left .",
        "nobody saw him go .",
    )


def test_blank_lines_part_paragraphs() -> None:
    assert split_paragraphs("One. Two.\n \n\nThree.\n") == (("One.", "Two."), ("Three.",))
    assert split_paragraphs(" \n\n ") == ()


@given(st.text(alphabet="aB1. !?\n\"')。", max_size=80))
def test_loses_nothing_but_whitespace(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == " ".join(sentence.split()) != "" for sentence in sentences)


def test_agrees_with_the_sentences_of_a_corpus_that_has_them() -> None:
    """Of the boundaries it sets at least 99 % are true, and it finds at least 90 %.

    The missing ones are list items and headings without a full stop.
    """
    true = found = both = 0
    for document in AclSum(limit_documents=30).load().documents:
        reference = _ends(document.sentences)
        split = _ends(split_sentences(document.text.replace("\n\n", " ")))
        true, found, both = true + len(reference), found + len(split), both + len(reference & split)
    assert both / found > 0.99
    assert both / true > 0.90


def _ends(sentences: tuple[str, ...]) -> set[int]:
    ends = set()
    length = 0
    for sentence in sentences:
        length += len(sentence.replace(" ", ""))
        ends.add(length)
    return ends
