"""Tolerate light congestion, then shorten linearly down to a floor."""

from dataclasses import dataclass

from bellman.errors import require


@dataclass(frozen=True)
class Knee:
    """scale = 1 up to `knee_level`, alpha_min from `full_level`, linear between.

    The defaults, 0.3, 0.8 and 0.25, give 1 - 1.5 (level - 0.3) between the two.
    """

    knee_level: float
    full_level: float
    alpha_min: float

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(
            0 <= self.knee_level < 1, "adaptation.knee_level", self.knee_level, "must be in [0, 1)"
        )
        require(
            self.knee_level < self.full_level <= 1,
            "adaptation.full_level",
            self.full_level,
            f"must be in (adaptation.knee_level={self.knee_level}, 1]",
        )
        require(
            0 < self.alpha_min <= 1, "adaptation.alpha_min", self.alpha_min, "must be in (0, 1]"
        )

    def scale(self, level: float) -> float:
        """Return the scale on the line through (knee_level, 1) and (full_level, alpha_min)."""
        share = (level - self.knee_level) / (self.full_level - self.knee_level)
        return 1.0 - (1.0 - self.alpha_min) * min(1.0, max(0.0, share))
