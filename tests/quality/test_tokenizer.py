import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.tokenizers import DefaultTokenizer

from bellman.corpus.aclsum import AclSum
from bellman.quality.tokenizer import UnicodeTokenizer, fold

SYMBOLS = "½²“”’‘—–…€£°±×™©→•¿¡\u00a0😀\ud83d"
"""What stands between the words of an English text beside ASCII."""
ENGLISH = st.characters(max_codepoint=0x7F) | st.sampled_from(SYMBOLS)


@pytest.mark.parametrize("use_stemmer", [False, True])
def test_english_text_is_split_as_by_default(use_stemmer: bool) -> None:
    own, default = UnicodeTokenizer(use_stemmer), DefaultTokenizer(use_stemmer)

    @settings(deadline=None)
    @given(st.text(ENGLISH, max_size=60).filter(lambda text: "<n>" not in text))
    def check(text: str) -> None:
        assert own.tokenize(text) == default.tokenize(text)

    check()


@pytest.mark.parametrize("use_stemmer", [False, True])
def test_real_references_are_split_as_by_default(use_stemmer: bool) -> None:
    own, default = UnicodeTokenizer(use_stemmer), DefaultTokenizer(use_stemmer)
    same = 0
    for document in AclSum(limit_documents=40).load().documents:
        if not any(c.isalpha() and not c.isascii() for c in document.reference):
            assert own.tokenize(document.reference) == default.tokenize(document.reference)
            same += 1
    assert same > 20


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Привет, мир! Это тест-2.", ["привет", "мир", "это", "тест", "2"]),
        ("今天下雨。GPT-4很好", ["今", "天", "下", "雨", "gpt", "4", "很", "好"]),
        ("カタカナ", list("カタカナ")),
        ("हिन्दी में पाठ।", ["हिन्दी", "में", "पाठ"]),
        ("ภาษาไทย", list("ภาษาไทย")),
        ("שלום עולם", ["שלום", "עולם"]),
        ("العَرَبِيَّة", ["العَرَبِيَّة"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("θ-values x² café", ["θ", "valu", "x", "café"]),
        ("mögen mägen", ["mögen", "mägen"]),
        ("à ô é", ["à", "ô", "é"]),
        ("naïve cafés", ["naïve", "cafés"]),  # Porter's rules are for English letters
        ("straße STRASSE", ["strass", "strass"]),
        ("ΟΔΟΣ οδός", ["οδοσ", "οδόσ"]),
        ("ﬁnal ﬄ", ["final", "ffl"]),
        ("İSTANBUL istanbul ısı", ["istanbul", "istanbul", "ısı"]),
        ("ＧＰＴ４ 𝐱", ["gpt4", "x"]),
        ("1º wordᵃ m²™ H₂O", ["1", "word", "m", "h", "o"]),
        ("canʼt can’t", ["can", "t", "can", "t"]),
        ("soft\u00adly می\u200cخواهم", ["softli", "میخواهم"]),
        ("1\ufe0f\u20e3 👩\u200d👩\u200d👧", ["1"]),
        ("3.14 1,000", ["3", "14", "1", "000"]),
        ("二〇二四", ["二", "〇", "二", "四"]),
        ("ﾊﾟﾊﾟ", ["パ", "パ"]),
        ("\ud83d a\udc00b", ["a", "b"]),
        ("one<n>two <n> three", ["one", "two", "three"]),
        (". ... — <n>", []),
    ],
)
def test_known_tokens(text: str, tokens: list[str]) -> None:
    assert UnicodeTokenizer(use_stemmer=True).tokenize(text) == tokens


ANY = st.text(st.characters(), max_size=40)
"""Lone surrogates too."""


@settings(deadline=None)
@given(ANY)
def test_equal_texts_have_equal_tokens_however_they_are_encoded(text: str) -> None:
    tokenizer = UnicodeTokenizer(use_stemmer=True)
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert tokenizer.tokenize(composed) == tokenizer.tokenize(decomposed)


CASED = st.characters(categories=["Ll", "Lu"], exclude_characters="ŀĿŉẚ")
"""Those left out are a letter with a dot or an apostrophe."""


@settings(deadline=None)
@given(st.text(CASED, max_size=20))
def test_every_letter_counts(text: str) -> None:
    tokens = UnicodeTokenizer(use_stemmer=False).tokenize(text)
    assert "".join(tokens) == fold(unicodedata.normalize("NFC", text))


@settings(deadline=None)
@given(ANY)
def test_tokens_stay_what_they_are(text: str) -> None:
    tokenizer = UnicodeTokenizer(use_stemmer=False)
    tokens = tokenizer.tokenize(text)
    assert tokenizer.tokenize(" ".join(tokens)) == tokens
    assert all(tokens)
