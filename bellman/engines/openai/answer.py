"""What the chunks of one streamed chat completion add up to."""

import json
from typing import Any

from bellman.engines.base import Completion, RequestFailed
from bellman.engines.openai.failures import message_of

ABORTED = ("abort", "error")
"""Finish reasons of a server that gave the request up."""

GAP_DIGITS = 6
"""Microseconds; more would only fill the records."""


class StreamedAnswer:
    """Collects the events of one chat completion stream and the times of its content.

    Tokens are what the server's `usage` says; a chunk may carry any number of them.
    """

    def __init__(self) -> None:
        self.done = False
        self._text: list[str] = []
        self._finish_reason: str | None = None
        self._prompt_tokens: int | None = None
        self._output_tokens: int | None = None
        self._first_token_s: float | None = None
        self._last_token_s = 0.0
        self._gaps_s: list[float] = []

    def take(self, event: bytes, now_s: float) -> None:
        """Take the data of one event that arrived at `now_s`.

        Raises `RequestFailed` for an error object and for data that is no JSON object.
        """
        if event.strip() == b"[DONE]":
            self.done = True
            return
        try:
            chunk = json.loads(event)
        except ValueError:
            chunk = None
        if not isinstance(chunk, dict):
            raise RequestFailed("error", f"no JSON object in the stream: {message_of(event)}")
        if chunk.get("error") or chunk.get("object") == "error":
            raise RequestFailed("error", f"error in the stream: {message_of(event)}")
        self._take_usage(chunk.get("usage"))
        choices = chunk.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._take_choice(choices[0], now_s)

    def completion(self, forced_output_tokens: int | None) -> Completion:
        """Return the whole answer; raises `RequestFailed` where it is not whole.

        A length-forced answer has no text to judge, and must have exactly the forced length.
        """
        if not self.done or self._finish_reason is None:
            missing = "[DONE]" if self._finish_reason is not None else "a finish_reason"
            raise RequestFailed("error", f"the stream ended before {missing}")
        if self._finish_reason in ABORTED:
            raise RequestFailed("error", f"the server gave up: finish_reason {self._finish_reason}")
        if self._first_token_s is None:
            raise RequestFailed("error", "the answer has no text")
        if forced_output_tokens is not None and self._output_tokens != forced_output_tokens:
            raise RequestFailed(
                "error",
                f"forced length not kept: {forced_output_tokens} tokens asked, "
                f"{self._output_tokens} reported",
            )
        return Completion(
            text="".join(self._text) if forced_output_tokens is None else None,
            prompt_tokens=self._prompt_tokens,
            output_tokens=self._output_tokens,
            finish_reason=self._finish_reason,
            first_token_s=self._first_token_s,
            last_token_s=self._last_token_s,
            chunk_gaps_s=self._gaps_s,
        )

    def _take_usage(self, usage: object) -> None:
        if isinstance(usage, dict):
            self._prompt_tokens = _count(usage.get("prompt_tokens"))
            self._output_tokens = _count(usage.get("completion_tokens"))

    def _take_choice(self, choice: dict[str, Any], now_s: float) -> None:
        delta = choice.get("delta")
        content = delta.get("content") if isinstance(delta, dict) else None
        if isinstance(content, str) and content:
            self._text.append(content)
            if self._first_token_s is None:
                self._first_token_s = now_s
            else:
                self._gaps_s.append(round(now_s - self._last_token_s, GAP_DIGITS))
            self._last_token_s = now_s
        finish_reason = choice.get("finish_reason")
        if isinstance(finish_reason, str):
            self._finish_reason = finish_reason


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
