"""The interface of an adaptation: the application's own answer to the signal."""

from typing import Literal, Protocol

Form = Literal["words", "tokens", "concise"]
"""How an application shortens.

`words`: it asks for fewer words in the prompt. `tokens`: it asks as ever and cuts `max_tokens`, so
that longer answers are cut off. `concise`: it asks to be concise and names no number.
"""


class Adaptation(Protocol):
    """A pure function from the congestion level to the share of the default length to ask for."""

    def scale(self, level: float) -> float:
        """Return the wanted length / default length, in (0, 1], never rising with `level`."""


def form_of(adaptation: Adaptation) -> Form:
    """Return how it shortens: its `form`, and by words where it has none."""
    form: Form = getattr(adaptation, "form", "words")
    return form
