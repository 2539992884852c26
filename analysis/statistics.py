"""Estimates with bootstrap intervals over the repeats, whose arms are paired."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, t

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Statistic = Callable[[Index], Array]
"""Takes rows of repeat numbers, shape (resamples, repeats); returns one value a row."""

RESAMPLES = 10_000
CONFIDENCE = 0.95
SEED = 15330


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval; the interval is None with fewer than two repeats."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def plus(self, offset: float) -> "Estimate":
        """Return the estimate moved by `offset`."""
        return Estimate(*(None if x is None else x + offset for x in self._all()))

    def complement(self) -> "Estimate":
        """Return 1 - estimate: turns a ratio into a reduction (the ends change places)."""
        value, low, high = (None if x is None else 1.0 - x for x in self._all())
        return Estimate(value, high, low)

    def _all(self) -> tuple[float | None, float | None, float | None]:
        return self.value, self.low, self.high


def bootstrap(statistic: Statistic, repeats: int) -> Estimate:
    """Estimate `statistic` over `repeats` paired repeats, with its interval.

    A resample draws whole repeats with replacement, so the arms of a repeat stay together. The
    interval is the expanded percentile interval (Hesterberg 2015, "What Teachers Should Know About
    the Bootstrap"): with few repeats the plain percentile interval is too narrow, by the factor
    sqrt((n - 1) / n) and by normal instead of t quantiles; the percentiles are moved out to make
    up for both. With five repeats that is nearly the range of the resamples. Seeded, so the same
    records give the same interval; nearest-rank, so that infinite values stay ordered.
    """
    if repeats == 0:
        return Estimate(None)
    value = _number(statistic(np.arange(repeats)[None, :])[0])
    if repeats == 1 or value is None:
        return Estimate(value)
    index = np.random.default_rng(SEED).integers(0, repeats, size=(RESAMPLES, repeats))
    samples = statistic(index)
    samples = samples[~np.isnan(samples)]
    if len(samples) == 0:
        return Estimate(value)
    tail = expanded_tail(repeats)
    low, high = np.quantile(samples, [tail, 1.0 - tail], method="inverted_cdf")
    return Estimate(value, _number(low), _number(high))


def expanded_tail(repeats: int) -> float:
    """Return the share cut at each end: Phi(-sqrt(n / (n - 1)) x t quantile of n - 1)."""
    quantile = t.ppf(0.5 + CONFIDENCE / 2, repeats - 1)
    return float(norm.cdf(-math.sqrt(repeats / (repeats - 1)) * quantile))


def mean(values: Array) -> Estimate:
    """Estimate the mean over repeats of one value per repeat."""
    return bootstrap(lambda index: values[index].mean(axis=1), len(values))


def ratio(numerators: Array, denominators: Array) -> Estimate:
    """Estimate sum(numerators) / sum(denominators), one of each per repeat."""

    def statistic(index: Index) -> Array:
        return divide(numerators[index].sum(axis=1), denominators[index].sum(axis=1))

    return bootstrap(statistic, len(numerators))


def ratio_of_means(sums_a: Array, counts_a: Array, sums_b: Array, counts_b: Array) -> Estimate:
    """Estimate (sum a / count a) / (sum b / count b), pooled over repeats."""

    def statistic(index: Index) -> Array:
        mean_a = divide(sums_a[index].sum(axis=1), counts_a[index].sum(axis=1))
        return divide(mean_a, divide(sums_b[index].sum(axis=1), counts_b[index].sum(axis=1)))

    return bootstrap(statistic, len(sums_a))


def difference(a: Array, b: Array) -> Estimate:
    """Estimate mean(a - b) of paired values, one of each per repeat."""
    return mean(a - b)


def divide(a: Array, b: Array) -> Array:
    """Return a / b, NaN where it has no value (x / 0, inf / inf)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient: Array = np.divide(a, b)
    return np.where(b == 0, np.nan, quotient)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
