"""Spillover: what the first replica does not serve goes to the next."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from bellman.schema import schema


@schema
class Spillover:
    """The first replica; the next when it fails, or before it while its level is high.

    The application heeds the level of the first alone: what it asks for is asked of the first, and
    an idle spare must not lengthen it, nor a full one shorten it.
    """

    level: Annotated[float, Field(gt=0, le=1)] | None = None
    """From this level of the first on, the others are asked before it; None: only when it fails."""

    def order(self, number: int, levels: Sequence[float | None]) -> Sequence[int]:
        """Return all of them; the first comes last while its level is high."""
        places = range(len(levels))
        first = levels[0]
        if self.level is not None and first is not None and first >= self.level:
            return [*places[1:], 0]
        return places

    def heeds(self, place: int) -> bool:
        """Whether it is the first."""
        return place == 0
