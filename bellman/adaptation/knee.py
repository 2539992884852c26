"""Tolerate light congestion, then shorten linearly down to a floor."""

from typing import Annotated

from pydantic import Field

from bellman.errors import require
from bellman.schema import Share, schema


@schema
class Knee:
    """scale = 1 up to `knee_level`, alpha_min from `full_level`, linear between.

    The defaults, 0.3, 0.8 and 0.25, give 1 - 1.5 (level - 0.3) between the two.
    """

    knee_level: Annotated[float, Field(ge=0, lt=1)]
    full_level: Share
    alpha_min: Share

    def __post_init__(self) -> None:
        """Check that the levels rise."""
        above = f"must be greater than knee_level={self.knee_level:g}"
        require(self.full_level > self.knee_level, "full_level", self.full_level, above)

    def scale(self, level: float) -> float:
        """Return the scale on the line through (knee_level, 1) and (full_level, alpha_min)."""
        share = (level - self.knee_level) / (self.full_level - self.knee_level)
        return 1.0 - (1.0 - self.alpha_min) * min(1.0, max(0.0, share))
