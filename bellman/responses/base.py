"""Response banks: what the simulated engine's model says is looked up, not invented."""

from dataclasses import dataclass
from typing import Protocol

from bellman.app.length_compliance import LengthCompliance

NO_CONCISE = (
    "has no answers to the prompt `be concise`: not measured; record them with "
    "scripts/record_responses.py --concise, or use a real engine"
)
"""What is said of a bank where the prompt names no number of words."""


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

    @property
    def answers_concise(self) -> bool:
        """Whether there are answers to the prompt that names no number: `asked_words` None."""

    def lookup(self, document_id: str, asked_words: int | None) -> Response:
        """Return the answer; raises `RunError` naming what the bank has when it has none."""

    def count_tokens(self, text: str) -> int | None:
        """Return the tokens of a prompt where they are known; None: there is no tokenizer."""
