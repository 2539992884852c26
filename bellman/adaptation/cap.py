"""Cut `max_tokens` in proportion to the congestion level, and ask as ever."""

from typing import ClassVar

from bellman.adaptation.base import Form
from bellman.schema import Share, schema


@schema
class Cap:
    """scale = max(alpha_min, 1 - level), as `linear`, but of the token limit.

    Below scale 1, `max_tokens` is the budget itself in tokens, without the guard that a limit
    above the ask has: answers that would be longer end there, in the middle of a sentence.
    """

    form: ClassVar[Form] = "tokens"

    alpha_min: Share
    """Smallest scale ever set (ours)."""

    def scale(self, level: float) -> float:
        """Return max(alpha_min, 1 - level)."""
        return max(self.alpha_min, 1.0 - level)
