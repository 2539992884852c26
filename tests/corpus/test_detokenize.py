"""Real sentences of the tokenised corpus, and what their authors wrote."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.corpus.detokenize import detokenize, detokenize_sentences

REAL = [
    (
        "neural machine translation ( NMT ) has become ( Sutskever et al . , 2014 ; Bahdanau "
        "et al . , 2015 ) .",
        "neural machine translation (NMT) has become (Sutskever et al., 2014; Bahdanau et al., "
        "2015).",
    ),
    (
        "then computes an attention weighted ' soft ' aligned input state , which",
        "then computes an attention weighted 'soft' aligned input state, which",
    ),
    (
        "according to doctors ' diagnosis descriptions",
        "according to doctors' diagnosis descriptions",
    ),
    (
        "to direct the model 's output with regard to content",
        "to direct the model's output with regard to content",
    ),
    ('responses such as " I do n\'t know " much', 'responses such as "I don\'t know" much'),
    (
        'the English word " Long " and the German word " Lange " , which have',
        'the English word "Long" and the German word "Lange", which have',
    ),
    (
        "equations by using ' Op ( operator / operand ) ' tokens as a unit of input / output .",
        "equations by using 'Op (operator/operand)' tokens as a unit of input/output.",
    ),
    ("the error rate by 29.2 % and 15.7 % , on", "the error rate by 29.2% and 15.7%, on"),
    ("estimated to be $ 25 billion per year", "estimated to be $25 billion per year"),
    ("tagger for StackOveflow ( § 3.1 ) that", "tagger for StackOveflow (§3.1) that"),
    ("reactors produce radioactive waste ...", "reactors produce radioactive waste..."),
    ("( e.g. , positive or negative ) of", "(e.g., positive or negative) of"),
    ("gains of around 6 - 7 % on SQuAD", "gains of around 6-7% on SQuAD"),
    ("a number 's actual value ( 3 < 4 ) .", "a number's actual value (3 < 4)."),
    (
        "the derived clusters can not explicitly align",
        "the derived clusters cannot explicitly align",
    ),
    ("contains over 180 K aligned triples", "contains over 180K aligned triples"),
    (
        "available at : https:// github.com / jeniyat / StackOverflowNER/",
        "available at: https://github.com/jeniyat/StackOverflowNER/",
    ),
    (
        "( Dušek et al . , 2018 ( Dušek et al . , , 2019 ) )",
        "(Dušek et al., 2018 (Dušek et al., 2019))",
    ),
    ("language modeling ( LM ): they are", "language modeling (LM): they are"),
    ('the summaries " [ Twitter ] [ fixes ]', 'the summaries "[Twitter] [fixes]'),
    ("入 れる ( put in )", "入れる (put in)"),
]


@pytest.mark.parametrize(("tokenised", "written"), REAL)
def test_restores_what_the_authors_wrote(tokenised: str, written: str) -> None:
    assert detokenize(tokenised) == written


@pytest.mark.parametrize(("tokenised", "written"), REAL)
def test_leaves_detokenised_text_alone(tokenised: str, written: str) -> None:
    assert detokenize(written) == written


def test_a_quotation_over_two_sentences_closes_in_the_second() -> None:
    sentences = ['for the input " John got home .', 'He called . " is', 'a " b " c']
    assert detokenize_sentences(sentences) == [
        'for the input "John got home.',
        'He called." is',
        'a "b" c',
    ]


def test_a_lost_quote_disturbs_no_later_sentence() -> None:
    sentences = ['an unclosed " quote .', "nothing here .", 'a " b " c']
    assert detokenize_sentences(sentences)[2] == 'a "b" c'


TOKENS = st.lists(st.sampled_from([*"()[]{}.;:?!'\"/%§$", "word", "dogs", "7", "'s"]), max_size=25)


@given(TOKENS)
def test_only_spaces_go(tokens: list[str]) -> None:
    # `;;` is collapsed, as a doubled comma is.
    expected = re.sub(r";+", ";", "".join(tokens))
    assert detokenize(" ".join(tokens)).replace(" ", "") == expected
