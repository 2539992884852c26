"""How long a decode step takes by the batch, identified from what was observed."""

from dataclasses import dataclass

Moments = tuple[float, float, float, float, float]
"""Weighted sums: 1, n, s, n x n, n x s, of batches n and step times s."""


@dataclass(frozen=True, slots=True)
class StepModel:
    """step time = base_s + sequence_s x batch, by least squares with exponential forgetting.

    Both are kept at 0 or more: a batch neither costs nothing nor gets faster as it grows. What a
    batch's prefill takes is in the observed steps, so it is in the coefficients, too.
    """

    moments: Moments = (0.0, 0.0, 0.0, 0.0, 0.0)

    def add(self, batch: float, step_s: float, keep: float) -> "StepModel":
        """Return the model with a pair more, after all earlier ones lost `1 - keep` of weight."""
        pair = (1.0, batch, step_s, batch * batch, batch * step_s)
        weight, n, s, nn, ns = (
            keep * old + new for old, new in zip(self.moments, pair, strict=True)
        )
        return StepModel((weight, n, s, nn, ns))

    @property
    def known(self) -> bool:
        """Whether anything was observed."""
        return self.moments[0] > 0

    def coefficients(self) -> tuple[float, float]:
        """Return base_s and sequence_s; where all batches were alike, the mean step and 0."""
        weight, n, s, nn, ns = self.moments
        spread = weight * nn - n * n
        slope_s = (weight * ns - n * s) / spread if spread > 1e-9 * weight * nn else 0.0
        slope_s = max(0.0, slope_s)
        base_s = (s - slope_s * n) / weight
        return (base_s, slope_s) if base_s >= 0 else (0.0, s / n)


NOTHING_KNOWN = StepModel()
