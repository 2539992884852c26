import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.tokenizers import DefaultTokenizer

from bellman.corpus.aclsum import AclSum
from bellman.quality.tokenizer import UnicodeTokenizer

LATIN = st.characters(max_codepoint=0x24F) | st.sampled_from("ɑẞﬁＡ𝑥²½—“…€İſ")


def kept_by_both(text: str) -> bool:
    """Letters of other scripts (µ is Greek) are what this tokenizer adds."""
    return not any(unicodedata.name(c, "").startswith(("GREEK", "MICRO")) for c in text.lower())


@pytest.mark.parametrize("use_stemmer", [False, True])
def test_latin_text_is_split_as_by_default(use_stemmer: bool) -> None:
    own, default = UnicodeTokenizer(use_stemmer), DefaultTokenizer(use_stemmer)

    @given(st.text(LATIN, max_size=60).filter(kept_by_both).filter(lambda text: "<n>" not in text))
    def check(text: str) -> None:
        assert own.tokenize(text) == default.tokenize(text)

    check()


@pytest.mark.parametrize("use_stemmer", [False, True])
def test_real_references_are_split_as_by_default(use_stemmer: bool) -> None:
    own, default = UnicodeTokenizer(use_stemmer), DefaultTokenizer(use_stemmer)
    for document in AclSum(limit_documents=40).load().documents:
        if kept_by_both(document.reference):
            assert own.tokenize(document.reference) == default.tokenize(document.reference)


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
        ("θ-values x² café", ["θ", "valu", "x", "caf"]),
        ("one<n>two <n> three", ["one", "two", "three"]),
        (". ... — <n>", []),
    ],
)
def test_known_tokens(text: str, tokens: list[str]) -> None:
    assert UnicodeTokenizer(use_stemmer=True).tokenize(text) == tokens


@given(st.text(max_size=40))
def test_any_text_has_a_place_for_every_token(text: str) -> None:
    squeezed = "".join(text.replace("<n>", " ").lower().split())
    for token in UnicodeTokenizer(use_stemmer=False).tokenize(text):
        place = squeezed.find(token)
        assert place >= 0
        squeezed = squeezed[place + len(token) :]
