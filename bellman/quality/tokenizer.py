"""The tokenizer handed to ROUGE: the default one for Latin text, and words of every other script.

The default tokenizer of `rouge-score` keeps a-z and 0-9 alone, so that two identical Chinese or
Hindi texts score 0. Here letters of other scripts are tokens as well: runs of them with their
marks, or single characters in scripts that put no spaces between words.
"""

import re
import unicodedata
from functools import cache

ASCII_TOKEN = re.compile(r"[a-z0-9]+")
LITERAL_NEWLINE = "<n>"
"""Some models and data sets write line breaks so; it is no word."""
SHORTEST_STEMMED = 4
"""As in the default tokenizer: words of up to three characters keep their endings."""
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
LATIN = ("LATIN", "FULLWIDTH LATIN", "MATHEMATICAL", "MODIFIER LETTER", "FEMININE", "MASCULINE")
"""Names of characters that the default tokenizer drops from Latin text, and so does this one."""


class UnicodeTokenizer:
    """A tokenizer as `rouge_score.rouge_scorer.RougeScorer(tokenizer=...)` takes it."""

    def __init__(self, use_stemmer: bool) -> None:
        self.use_stemmer = use_stemmer
        if use_stemmer:
            # nltk takes most of a second to import.
            from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]  # noqa: PLC0415

            self._stem = PorterStemmer().stem
        # Words repeat: each is split and stemmed once.
        self._word_tokens = cache(self._split_word)

    def tokenize(self, text: str) -> list[str]:
        """Split a text into tokens, in lower case and stemmed if so configured."""
        words = text.replace(LITERAL_NEWLINE, " ").split()
        return [token for word in words for token in self._word_tokens(word)]

    def _split_word(self, word: str) -> tuple[str, ...]:
        word = word.lower()
        tokens = ASCII_TOKEN.findall(word) if word.isascii() else list(split_unicode(word))
        if self.use_stemmer:
            tokens = [
                self._stem(token) if token.isascii() and len(token) >= SHORTEST_STEMMED else token
                for token in tokens
            ]
        return tuple(tokens)


def split_unicode(word: str) -> list[str]:
    """Split a lower-case word with characters beyond ASCII."""
    tokens: list[str] = []
    previous = ""  # kind of the character before
    for character in word:
        kind = character_kind(character)
        if kind == "mark":
            # Vowel signs and accents belong to the letter before, where that is kept.
            kind = previous if previous in {"letter", "unspaced"} else ""
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
    """Return `ascii` or `letter` (part of a run), `unspaced` (a token), `mark`, or "" (dropped)."""
    if character.isascii():
        return "ascii" if character.isalnum() else ""
    category = unicodedata.category(character)
    if category.startswith("M"):
        return "mark"
    if not category.startswith("L") and category != "Nd":
        return ""
    name = unicodedata.name(character, "")
    if name.startswith(LATIN):
        return ""
    return "unspaced" if name.startswith(UNSPACED) else "letter"
