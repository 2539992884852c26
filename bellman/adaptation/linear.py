"""Shorten in proportion to the congestion level."""

from bellman.schema import Share, schema


@schema
class Linear:
    """scale = max(alpha_min, 1 - level)."""

    alpha_min: Share
    """Smallest scale ever asked for (ours)."""

    def scale(self, level: float) -> float:
        """Return max(alpha_min, 1 - level)."""
        return max(self.alpha_min, 1.0 - level)
