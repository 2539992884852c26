"""Response banks: what the simulated engine's model says is looked up, not invented."""

from dataclasses import dataclass
from typing import Protocol

from bellman.app.length_compliance import LengthCompliance


@dataclass(frozen=True, slots=True)
class Response:
    """One recorded (or extracted) answer."""

    text: str
    words: int
    output_tokens: int
    finish_reason: str
    """`stop` or `length`."""


class ResponseBank(Protocol):
    """Answers by (document, asked words)."""

    @property
    def kind(self) -> str:
        """Shown wherever its ROUGE is: `extractive stand-in`, or `recorded from <model>`."""

    @property
    def length_compliance(self) -> LengthCompliance | None:
        """Mean words by asked words; None where any ask can be answered."""

    def lookup(self, document_id: str, asked_words: int) -> Response:
        """Return the answer; raises `RunError` naming what the bank has when it has none."""

    def count_tokens(self, text: str) -> int | None:
        """Return the tokens of a prompt where they are known; None: there is no tokenizer."""
