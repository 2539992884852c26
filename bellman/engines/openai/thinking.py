"""Reasoning that a model writes into its answer's text, between tags."""

import re

NAME = r"(?:\w+:)?(?:think(?:ing)?|thought|reasoning)"
OPENING = re.compile(rf"<{NAME}>|\[THINK\]|◁think▷", re.IGNORECASE)
CLOSING = re.compile(rf"</{NAME}>|\[/THINK\]|◁/think▷", re.IGNORECASE)
"""By the tags of DeepSeek, Qwen, Seed, Gemini, Magistral and Kimi."""


def spans_outside_thinking(text: str) -> list[tuple[int, int]]:
    """Return where the answer itself stands in a text, as [start, end) pairs.

    A block ends with its closing tag, or with the text where a limit cut it. A closing tag alone
    ends a block that the prompt's template opened: everything before it is reasoning.
    """
    spans: list[tuple[int, int]] = []
    position = 0
    while position < len(text):
        closing = CLOSING.search(text, position)
        opening = OPENING.search(text, position)
        if closing is not None and (opening is None or closing.start() < opening.start()):
            spans, position = [], closing.end()
            continue
        if opening is None:
            spans.append((position, len(text)))
            break
        spans.append((position, opening.start()))
        position = len(text) if closing is None else closing.end()
    return _trimmed(text, spans)


def _trimmed(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out what is blank, and the space that a block leaves before the answer."""
    filled = [(start, end) for start, end in spans if text[start:end].strip()]
    if not filled or filled[0][0] == 0:
        return filled
    start, end = filled[0]
    start += len(text[start:end]) - len(text[start:end].lstrip())
    return [(start, end), *filled[1:]]
