"""Undoes the spacing of tokenised text: `( MT ) , the model 's` -> `(MT), the model's`.

Only spaces go, plus the doubled commas that citation extraction leaves (`et al . , , 2017`).
"""

import re
from collections.abc import Iterable

ATTACHED_LEFT = re.compile(r"[,.;:?!)\]}%]|\.{2,}|\)[:;,.]|'(s|re|ve|ll|d|m)|n't", re.IGNORECASE)
ATTACHED_RIGHT = frozenset("([{§")
ELLIPSES = frozenset(("...", "…"))
KANA_OR_HAN = r"[\u3040-\u30ff\u3400-\u9fff]"
URL_START = r"(?:https?://|\w+\.(?:com|org|io)/)"
POSSESSIVE_REACH = 4
"""A single quote after a plural `s` opens a quotation only if it closes within so many tokens."""


def detokenize_sentences(sentences: Iterable[str]) -> list[str]:
    """Detokenise the sentences of one section in order.

    A double quote left open by a sentence closes in the next one if that one's are odd as well.
    """
    detokenized = []
    inside_quotes = False
    for sentence in sentences:
        odd = sentence.split().count('"') % 2 == 1
        detokenized.append(detokenize(sentence, inside_quotes=inside_quotes and odd))
        inside_quotes = odd and not inside_quotes
    return detokenized


def detokenize(sentence: str, inside_quotes: bool = False) -> str:
    """Detokenise one sentence; `inside_quotes` if its first double quote closes one."""
    tokens = sentence.split()
    text = ""
    glued = True
    in_double, in_single = inside_quotes, False
    for position, token in enumerate(tokens):
        if token.isalnum():  # most are, and attach to nothing
            text += token if glued else " " + token
            glued = False
            continue
        glue_before = _attaches_left(tokens, position)
        glue_after = token in ATTACHED_RIGHT or _is_price_sign(tokens, position)
        if token == '"':
            glue_before, glue_after, in_double = in_double, not in_double, not in_double
        elif token == "'":
            if in_single or _is_possessive(tokens, position):
                glue_before, glue_after, in_single = True, False, False
            else:
                glue_before, glue_after, in_single = False, True, True
        elif token == "/" and 0 < position < len(tokens) - 1:
            glue_before = glue_after = True
        text += token if glued or glue_before else " " + token
        glued = glue_after
    return _repair(text)


def _attaches_left(tokens: list[str], position: int) -> bool:
    token = tokens[position]
    if token in ELLIPSES or set(token) == {"."}:
        return position > 0 and tokens[position - 1] != ","
    return ATTACHED_LEFT.fullmatch(token) is not None


def _is_price_sign(tokens: list[str], position: int) -> bool:
    following = tokens[position + 1 : position + 2]
    return tokens[position] == "$" and bool(following) and following[0][0].isdigit()


def _is_possessive(tokens: list[str], position: int) -> bool:
    """Tell the apostrophe of `users ' interests` from the quote that opens in `words ' soft '`."""
    if position == 0 or not tokens[position - 1].endswith("s"):
        return False
    rest = tokens[position + 1 :]
    return "'" not in rest[: POSSESSIVE_REACH + 1]


def _repair(text: str) -> str:
    text = re.sub(r",(?:\s*,)+", ",", text)
    text = re.sub(r";(?:\s*;)+", ";", text)
    text = re.sub(r"\b([Cc])an not\b", r"\1annot", text)
    text = re.sub(r"(\d) ([KM])\b", r"\1\2", text)
    text = re.sub(r"(?<=\d) - (?=\d)", "-", text)
    text = re.sub(rf"(?<={KANA_OR_HAN}) (?={KANA_OR_HAN})", "", text)
    text = re.sub(r"(https?) ?: ?// ?(?=\w)", r"\1://", text)
    return re.sub(rf"({URL_START}\S*/) (?=\w)", r"\1", text)
