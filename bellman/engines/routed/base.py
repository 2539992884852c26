"""The interface of a route: which replicas a request is sent to, one after the other."""

from collections.abc import Sequence
from typing import Protocol


class Route(Protocol):
    """The parameters of a rule."""

    def order(self, number: int, levels: Sequence[float | None]) -> Sequence[int]:
        """Return the replicas, by their places, that the `number`-th request (0, 1, 2...) may take.

        The first is sent to at once, each next one when those before it have failed. `levels` are
        the replicas' own, None where one publishes none.
        """

    def heeds(self, place: int) -> bool:
        """Whether the application shortens what it asks for by the level of this replica."""
