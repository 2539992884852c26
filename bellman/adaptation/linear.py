"""Shorten in proportion to the congestion level."""

from dataclasses import dataclass

from bellman.errors import require


@dataclass(frozen=True)
class Linear:
    """scale = max(alpha_min, 1 - level)."""

    alpha_min: float
    """Smallest scale ever asked for (ours)."""

    def __post_init__(self) -> None:
        """Check the range."""
        require(
            0 < self.alpha_min <= 1, "adaptation.alpha_min", self.alpha_min, "must be in (0, 1]"
        )

    def scale(self, level: float) -> float:
        """Return max(alpha_min, 1 - level)."""
        return max(self.alpha_min, 1.0 - level)
