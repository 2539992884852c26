"""Round robin: each replica in its turn."""

from collections.abc import Sequence

from bellman.schema import schema


@schema
class RoundRobin:
    """One request each in turn; what a replica refuses is refused.

    The application heeds all levels, the last that came: the replicas share one load.
    """

    def order(self, number: int, levels: Sequence[float | None]) -> Sequence[int]:
        """Return the one whose turn it is."""
        return [number % len(levels)]

    def heeds(self, place: int) -> bool:
        """Heed all."""
        return True
