"""What the chunks of one streamed chat completion add up to."""

import json
from bisect import bisect_right
from itertools import accumulate
from typing import Any

from bellman.engines.base import Completion, RequestFailed
from bellman.engines.openai.failures import LONGEST, message_of
from bellman.engines.openai.thinking import spans_outside_thinking
from bellman.foreign_text import printable, whole_characters

GIVEN_UP = {
    *("abort", "aborted", "cancelled", "canceled", "error", "timeout"),
    *("content_filter", "sensitive", "insufficient_system_resource", "network_error"),
}
"""Finish reasons of a server that did not write the answer to its end (the last: DeepSeek, GLM)."""
BESIDE_TEXT = {
    "reasoning": (
        *("reasoning_content", "reasoning", "thinking"),
        *("reasoning_details", "thinking_blocks", "reasoning_text"),
    ),
    "tool calls": ("tool_calls", "function_call"),
    "a refusal": ("refusal",),
}
"""What a delta may hold besides text, by the names that servers give it."""
THINKING = ("thinking", "reasoning")
"""Types of a content's parts that are none of the answer."""
LONGEST_FINISH_REASON = 40
MOST_PIECES = 200_000
"""Of one answer: more than any model writes tokens."""
LARGEST_COUNT = 2**31 - 1
"""Tokens that the records can hold."""
GAP_DIGITS = 6
"""Microseconds; more would only fill the records."""


class StreamedAnswer:
    """Collects the events of one chat completion stream and the times of what the model writes.

    Tokens are what the server's `usage` says; a chunk may carry any number of them. Everything that
    the model writes is timed (reasoning, refusals and tool calls, too, for `usage` counts them),
    but only the answer's text is kept.
    """

    def __init__(self) -> None:
        self.done = False
        self._text: list[str] = []
        self._text_times_s: list[float] = []
        self._refusal = ""
        self._kinds: set[str] = set()
        self._finish_reason: str | None = None
        self._prompt_tokens: int | None = None
        self._output_tokens: int | None = None
        self._reasoning_tokens: int | None = None
        self._first_s: float | None = None
        self._last_s = 0.0
        self._gaps_s: list[float] = []

    def take(self, event: bytes, now_s: float) -> None:
        """Take the data of one event that arrived at `now_s`; none counts after `[DONE]`.

        Raises `RequestFailed` for an error object, for data that is no JSON object, and for an
        answer that is not one answer.
        """
        if self.done or event.strip() == b"[DONE]":
            self.done = True
            return
        chunk = _json_object(event)
        if chunk.get("error") or chunk.get("object") == "error":
            raise RequestFailed("error", f"error in the stream: {message_of(event)}")
        choices = chunk.get("choices")
        listed = choices if isinstance(choices, list) else []
        for place, choice in enumerate(choice for choice in listed if isinstance(choice, dict)):
            self._take_choice(choice, place, now_s)
        # After the choices: the usage of a chunk counts that chunk, too.
        self._take_usage(chunk.get("usage"))

    def completion(self, forced_output_tokens: int | None, retries: int = 0) -> Completion:
        """Return the whole answer; raises `RequestFailed` where it is not whole.

        A length-forced answer has no text to judge, and must have exactly the forced length.
        """
        if not self.done or self._finish_reason is None:
            missing = "[DONE]" if self._finish_reason is not None else "a finish_reason"
            raise RequestFailed("error", f"the stream ended before {missing}")
        if self._finish_reason.lower() in GIVEN_UP:
            raise RequestFailed("error", f"the server gave up: finish_reason {self._finish_reason}")
        if self._first_s is None:
            raise RequestFailed("error", "the answer has no text")
        text, first_content_s = None, self._content_s(0)
        if forced_output_tokens is None:
            text, first_content_s = self._answer_text()
        elif self._output_tokens != forced_output_tokens:
            raise RequestFailed(
                "error",
                f"forced length not kept: {forced_output_tokens} tokens asked, "
                f"{self._output_tokens} reported",
            )
        return Completion(
            text=text,
            prompt_tokens=self._prompt_tokens,
            output_tokens=self._output_tokens,
            reasoning_tokens=self._reasoning_tokens,
            finish_reason=self._finish_reason,
            first_token_s=self._first_s,
            first_content_token_s=first_content_s,
            last_token_s=self._last_s,
            chunk_gaps_s=self._gaps_s,
            retries=retries,
        )

    def _answer_text(self) -> tuple[str, float | None]:
        """Return the text without reasoning, and when its first token came."""
        if self._refusal:
            refusal = printable(self._refusal, LONGEST)
            raise RequestFailed("error", f"the model refused: {refusal}")
        raw = "".join(self._text)
        spans = spans_outside_thinking(raw)
        if not spans:
            kinds = sorted(self._kinds | ({"reasoning"} if raw.strip() else set()))
            alone = f": {' and '.join(kinds)} alone" if kinds else ""
            ended = f" (finish_reason {self._finish_reason})" if kinds else ""
            raise RequestFailed("error", f"the answer has no text{alone}{ended}")
        if spans == [(0, len(raw))]:  # nothing but the answer
            return whole_characters(raw), self._text_times_s[0]
        text = whole_characters("".join(raw[start:end] for start, end in spans))
        return text, self._content_s(spans[0][0])

    def _content_s(self, position: int) -> float | None:
        """Return when the character at a position of the raw text came."""
        if not self._text:
            return None
        ends = list(accumulate(map(len, self._text)))
        return self._text_times_s[bisect_right(ends, position)]

    def _take_usage(self, usage: object) -> None:
        """Take the counts of a usage object: the last one that has any, and is not outdated."""
        if not isinstance(usage, dict):
            return
        if usage.get("prompt_tokens") is not None:
            self._prompt_tokens = _count(usage["prompt_tokens"])
        if usage.get("completion_tokens") is not None:
            details = usage.get("completion_tokens_details")
            reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
            self._reasoning_tokens = _count(reasoning, least=0)
            self._output_tokens = _written(usage, self._reasoning_tokens or 0)

    def _take_choice(self, choice: dict[str, Any], place: int, now_s: float) -> None:
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        content, thinks = _texts(delta.get("content"))
        if not content and isinstance(choice.get("text"), str):  # the older completions' name
            content = choice["text"]
        kinds = {
            kind
            for kind, names in BESIDE_TEXT.items()
            if any(_is_filled(delta.get(name)) for name in names)
        } | ({"reasoning"} if thinks else set())
        if _is_another(choice.get("index"), place):
            if content or kinds:
                raise RequestFailed("error", "several answers where one was asked for")
            return
        if content or kinds:
            self._note(content, now_s)
        self._kinds |= kinds
        if "a refusal" in kinds and len(self._refusal) < LONGEST:
            self._refusal += str(delta["refusal"])
        finish_reason = choice.get("finish_reason")
        if isinstance(finish_reason, str) and finish_reason:  # some say "" until the end
            self._finish_reason = printable(finish_reason, LONGEST_FINISH_REASON)

    def _note(self, content: str, now_s: float) -> None:
        """Note the time of a piece that the model wrote, and keep the answer's text."""
        if len(self._gaps_s) >= MOST_PIECES:
            raise RequestFailed("error", f"an answer in more than {MOST_PIECES} pieces")
        if self._first_s is None:
            self._first_s = now_s
        else:
            self._gaps_s.append(round(now_s - self._last_s, GAP_DIGITS))
        self._last_s = now_s
        if content:
            self._text.append(content)
            self._text_times_s.append(now_s)
        self._output_tokens = self._reasoning_tokens = None  # counted before this piece came


def _json_object(event: bytes) -> dict[str, Any]:
    try:
        # Bytes that are no UTF-8 are replaced, as the standard of event streams says.
        value = json.loads(event.decode(errors="replace"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RequestFailed("error", f"no JSON object in the stream: {message_of(event)}")
    return value


def _texts(content: object) -> tuple[str, bool]:
    """Return the text of a delta's content, and whether it holds reasoning, too.

    It is a string, or a list of parts of which those of type `text` are the answer's (Mistral).
    """
    if isinstance(content, str):
        return content, False
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if _type(part) == "text"]
    return "".join(text for text in texts if isinstance(text, str)), any(
        _type(part) in THINKING for part in parts
    )


def _type(part: object) -> object:
    return part.get("type") if isinstance(part, dict) else None


def _is_filled(value: object) -> bool:
    return isinstance(value, str | list | dict) and bool(value)


def _is_another(index: object, place: int) -> bool:
    """Tell whether a choice is of a second answer, by its index or else its place in the chunk."""
    known = isinstance(index, int) and not isinstance(index, bool)
    return (index if known else place) != 0


def _written(usage: dict[str, Any], reasoning: int) -> int | None:
    """Return the tokens that the model wrote, or None where the counts contradict one another.

    Some servers leave reasoning out of `completion_tokens`, but not out of `total_tokens` (Grok).
    """
    tokens = _count(usage["completion_tokens"])
    prompt, total = _count(usage.get("prompt_tokens")), _count(usage.get("total_tokens"))
    if tokens is None:
        return None
    beside = total - prompt - tokens if total is not None and prompt is not None else 0
    if beside > 0:
        return _count(tokens + reasoning) if beside == reasoning else None
    return tokens if tokens >= reasoning else None


def _count(value: object, least: int = 1) -> int | None:
    """Return a number of tokens, or None for what can be none."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if least <= value <= LARGEST_COUNT else None
