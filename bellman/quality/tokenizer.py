"""The tokenizer handed to ROUGE: the default one for English, and words of every other language.

The default tokenizer of `rouge-score` keeps a-z and 0-9 alone: "mögen" and "mägen" become the same
two tokens "m" and "gen", and two identical Chinese texts score 0. Here every letter counts. Texts
of ASCII letters, with any punctuation and symbols between them, are split exactly as by default;
of other texts tokens are runs of Latin letters and ASCII digits, runs of letters of another script
with their marks, or single characters in scripts that put no spaces between words. Equal letters
are equal however they are encoded: composed or not (NFC, NFD), in full width, as a ligature (ﬁ),
in any case (by Unicode's case folding: ß is ss; İ is i). Accents count, and symbols and emoji are
no words, as punctuation is none.
"""

import re
import unicodedata
from functools import cache

from bellman.quality.hidden import hidden

ASCII_TOKEN = re.compile(r"[a-z0-9]+")
LITERAL_NEWLINE = "<n>"
"""Some models and data sets write line breaks so; it is no word."""
SHORTEST_STEMMED = 4
"""As in the default tokenizer: words of up to three characters keep their endings."""
UNSPACED = (
    "CJK",
    "IDEOGRAPHIC",
    "HIRAGANA",
    "KATAKANA",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "TIBETAN",
)
APOSTROPHES = "MODIFIER LETTER"
"""Letters by name only: they stand for an apostrophe, and split a word as one does."""
RAISED = ("<super>", "<sub>")
"""Letters that mark an ending or a footnote (1º, wordᵃ): no part of a word, as a raised digit."""
VARIATION_SELECTOR = "VARIATION SELECTOR"
DOTTED_I = "i\N{COMBINING DOT ABOVE}"
ZERO_WIDTH_SPACE = "\N{ZERO WIDTH SPACE}"


class UnicodeTokenizer:
    """A tokenizer as `rouge_score.rouge_scorer.RougeScorer(tokenizer=...)` takes it."""

    def __init__(self, use_stemmer: bool) -> None:
        self.use_stemmer = use_stemmer
        if use_stemmer:
            with hidden("scipy.stats"):  # half a second, for tests of collocations
                # nltk itself takes a fifth of a second.
                from nltk.stem.porter import (  # type: ignore[import-untyped]  # noqa: PLC0415
                    PorterStemmer,
                )

            self._stem = cache(PorterStemmer().stem)
        # Words repeat: each is split once, and each token stemmed once.
        self._word_tokens = cache(self._split_word)

    def tokenize(self, text: str) -> list[str]:
        """Split a text into tokens, case folded, and stemmed if so configured.

        Only tokens of ASCII letters are stemmed: Porter's rules are for English.
        """
        words = unicodedata.normalize("NFC", text.replace(LITERAL_NEWLINE, " ")).split()
        return [token for word in words for token in self._word_tokens(word)]

    def _split_word(self, word: str) -> tuple[str, ...]:
        tokens = ASCII_TOKEN.findall(word.lower()) if word.isascii() else split_unicode(fold(word))
        if self.use_stemmer:
            tokens = [
                self._stem(token) if token.isascii() and len(token) >= SHORTEST_STEMMED else token
                for token in tokens
            ]
        return tuple(tokens)


def fold(word: str) -> str:
    """Return a word with one form for each letter: plain width, no ligatures, case folded, NFC.

    Symbols keep theirs: "x²" is not "x2", and "word™" not "wordtm".
    """
    plain = "".join(unicodedata.normalize("NFKC", c) if _is_letter(c) else c for c in word)
    decomposed = unicodedata.normalize("NFD", plain.casefold())
    return unicodedata.normalize("NFC", decomposed.replace(DOTTED_I, "i"))


def split_unicode(word: str) -> list[str]:
    """Split a folded word with characters beyond ASCII."""
    tokens: list[str] = []
    previous = ""  # kind of the character before
    for character in word:
        kind = character_kind(character)
        if kind == "ignored":
            continue
        if kind == "mark":
            # Vowel signs and accents belong to the letter before, where that is kept.
            kind = previous
            if kind:
                tokens[-1] += character
        elif kind == "unspaced" or (kind and kind != previous):
            tokens.append(character)
        elif kind:
            tokens[-1] += character
        previous = kind
    return tokens


@cache
def character_kind(character: str) -> str:
    """Return `latin` or `letter` (part of a run), `unspaced` (a token), `mark`, `ignored`, or "".

    "" ends a run; `ignored` (joiners, soft hyphens, variation selectors) does not.
    """
    if character.isascii():
        return "latin" if character.isalnum() else ""
    category = unicodedata.category(character)
    name = unicodedata.name(character, "")
    if character != ZERO_WIDTH_SPACE and (category in {"Cf", "Me"} or VARIATION_SELECTOR in name):
        return "ignored"
    if category.startswith("M"):
        return "mark"
    if not _is_letter(character) or name.startswith(APOSTROPHES):
        return ""
    if name.startswith("LATIN"):
        return "latin"
    return "unspaced" if name.startswith(UNSPACED) else "letter"


def _is_letter(character: str) -> bool:
    """Whether it is a letter, a digit or a number like Ⅳ and 〇, and not raised or lowered."""
    category = unicodedata.category(character)
    if not category.startswith("L") and category not in {"Nd", "Nl"}:
        return False
    return not unicodedata.decomposition(character).startswith(RAISED)
