"""Shorten in a few coarse steps."""

from itertools import pairwise

from bellman.errors import require
from bellman.schema import OneOrMore, Share, schema


@schema
class Steps:
    """scale = scales[i] where `levels[i]` is the highest threshold that the level reaches."""

    levels: OneOrMore[float]
    """Thresholds of the level, rising from 0."""
    scales: list[Share]
    """Scale from each threshold on, falling from 1."""

    def __post_init__(self) -> None:
        """Check that the one rises and the other falls."""
        levels, scales = self.levels, self.scales
        rising = all(low < high for low, high in pairwise(levels))
        from_0_to_1 = levels[0] == 0 and levels[-1] <= 1
        require(from_0_to_1 and rising, "levels", levels, "must rise from 0, at most to 1")
        falling = all(high > low for high, low in pairwise(scales))
        fall = f"must be {len(levels)} numbers in (0, 1] that fall"
        require(len(scales) == len(levels) and falling, "scales", scales, fall)

    def scale(self, level: float) -> float:
        """Return the scale of the highest threshold reached."""
        reached = [
            scale
            for threshold, scale in zip(self.levels, self.scales, strict=True)
            if level >= threshold
        ]
        return reached[-1] if reached else self.scales[0]
