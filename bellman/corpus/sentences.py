"""Splits plain text into paragraphs and sentences, by rules, for corpora that bring none.

A sentence ends at . ! ? (and closing quotes or brackets) before whitespace and something that can
start a sentence, unless the full stop belongs to an abbreviation, an initial or an enumeration.
Chinese and Japanese sentences end at 。！？ without whitespace, Hindi ones at ।.
"""

import re

BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
BOUNDARY = re.compile(
    r"(?P<mark>[.!?…]+)(?P<closing>[\"'”’»)\]]*)(?P<space>\s+)(?=(?P<next>[\"'“‘«(\[]*\S))"
    r"|[。！？｡]+[」』”’）]*\s*|[।؟]+\s+"
)
ABBREVIATION_LIST = """
mr mrs ms dr prof rev gen sen rep gov lt col sgt capt st jr sr inc ltd co corp dept ft mt no nos
fig figs eq eqs sec secs ch vol pp ed eds al cf vs e.g i.e viz approx resp w.r.t a.k.a
jan feb mar apr jun jul aug sep sept oct nov dec
"""
ABBREVIATIONS = frozenset(ABBREVIATION_LIST.split())
"""Before a capital or a digit these end no sentence (etc., a.m. and U.S. may)."""
LAST_TOKEN = re.compile(r"[^\s(\[\"'“‘«]+$")
INITIAL = re.compile(r"[^\W\d_]")
"""One letter: `J. Smith`."""
ENUMERATION = re.compile(r"\d{1,3}|[a-zA-Z]|[ivx]{1,4}")


def split_paragraphs(text: str) -> tuple[tuple[str, ...], ...]:
    """Split at blank lines, then into sentences; empty paragraphs are left out."""
    paragraphs = (split_sentences(paragraph) for paragraph in BLANK_LINE.split(text))
    return tuple(paragraph for paragraph in paragraphs if paragraph)


def split_sentences(text: str) -> tuple[str, ...]:
    """Split one paragraph; whitespace inside a sentence becomes one space.

    No character but whitespace is lost.
    """
    sentences = []
    start = 0
    for match in BOUNDARY.finditer(text):
        if match["mark"] is None or _ends_sentence(text, start, match):
            sentences.append(text[start : match.end()])
            start = match.end()
    sentences.append(text[start:])
    stripped = (" ".join(sentence.split()) for sentence in sentences)
    return tuple(sentence for sentence in stripped if sentence)


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    following = match["next"][-1]
    if "\n" in match["space"]:
        return True
    if following.islower():
        return False
    if match["mark"] != ".":
        return True
    before = LAST_TOKEN.search(text, start, match.start())
    token = before[0] if before else ""
    if token.lower() in ABBREVIATIONS or (INITIAL.fullmatch(token) and token != "I"):
        return False
    is_first = before is not None and not text[start : before.start()].strip()
    return not (is_first and ENUMERATION.fullmatch(token))
