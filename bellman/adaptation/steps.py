"""Shorten in a few coarse steps."""

from dataclasses import dataclass, field

from bellman.errors import require


@dataclass(frozen=True)
class Steps:
    """scale = scales[i] where `levels[i]` is the highest threshold that the level reaches."""

    levels: list[float] = field(default_factory=list)
    """Thresholds of the level, rising from 0."""
    scales: list[float] = field(default_factory=list)
    """Scale from each threshold on, falling from 1."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        rising = all(low < high for low, high in zip(self.levels, self.levels[1:], strict=False))
        require(
            bool(self.levels) and self.levels[0] == 0 and rising and self.levels[-1] <= 1,
            "adaptation.levels",
            self.levels,
            "must rise from 0, at most to 1",
        )
        falling = all(high > low for high, low in zip(self.scales, self.scales[1:], strict=False))
        require(
            len(self.scales) == len(self.levels)
            and 0 < self.scales[-1] <= self.scales[0] <= 1
            and falling,
            "adaptation.scales",
            self.scales,
            f"must be {len(self.levels)} numbers in (0, 1] that fall",
        )

    def scale(self, level: float) -> float:
        """Return the scale of the highest threshold reached."""
        reached = [
            scale
            for threshold, scale in zip(self.levels, self.scales, strict=True)
            if level >= threshold
        ]
        return reached[-1] if reached else self.scales[0]
