"""Always ask to be concise, without a number of words, whatever the signal says."""

from typing import ClassVar

from bellman.adaptation.base import Form
from bellman.schema import schema


@schema
class Concise:
    """The prompt asks to be concise (`bellman.app.prompt`); how much that shortens is measured.

    A response bank must have recorded the answers to that prompt: none are made up for it.
    """

    form: ClassVar[Form] = "concise"

    def scale(self, level: float) -> float:
        """Return 1: no share of the default length is asked for."""
        return 1.0
