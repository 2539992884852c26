"""A claim of the paper with its estimate, and the rules that turn both into a verdict.

Verdicts, in this order:

not measured     the quantity is not there (no energy reading, no congested phase, nothing
                 finished), the run is invalid, or one repeat gives no interval to judge by
not reproduced   there is no effect in the claimed direction, the interval does not exclude "no
                 effect", or the estimate is less than a tenth of the paper's effect
partly           the effect is there but smaller than the paper's, or it may come from dropped
                 requests
reproduced       the estimate reaches the paper's figure, or the interval contains it and excludes
                 half of the paper's effect (a wide interval contains every figure)

Dropped requests: latency means are over requests that ended ok. An arm that drops the slow ones
looks fast and saves energy, so where the treatment loses a share of its requests that is more than
one percentage point above the baseline's (over the congested phase, or in the very window that
holds the largest ratio) the latency and energy claims are `partly` at most. A baseline that loses
more is only named: losing requests makes the baseline look better, not the treatment. The
percentile ratios beside the claim count every lost request as +inf.

"Up to 8x" is a maximum over windows, and a maximum of noisy ratios lies above 1 even without any
effect. So its "no effect" is excluded only if the interval of the whole phase's mean ratio excludes
it too. Where one window alone reaches the paper's figure, the reason says so.
"""

from dataclasses import dataclass, replace
from typing import Literal

from analysis.statistics import Estimate

Verdict = Literal["reproduced", "partly", "not reproduced", "not measured", "no claim"]
"""`no claim`: another arm than the one that stands for the paper's."""
ROUNDING = 1e-9
"""Sums of floats differ by less; an effect this small is none."""
NAMEABLE = 0.1
"""Share of the paper's effect that an estimate must reach to be a part of it (ours)."""
Unit = Literal["times", "less", "more"]
"""`times`: a ratio, no effect at 1. `less`, `more`: a change as a fraction, no effect at 0."""


@dataclass(frozen=True)
class Companion:
    """A number that stands beside a claim so that it is not read alone.

    One that is another reading of the paper's words has a verdict of its own.
    """

    name: str
    estimate: Estimate
    unit: Unit
    definition: str
    sensitive_to: str = ""
    """What moves it, of the settings of an experiment."""
    verdict: Verdict | None = None
    reason: str = ""
    """Of the verdict, or why there is no estimate."""
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """One claim of the paper against one treatment."""

    name: str
    treatment: str
    paper: str
    """The paper's figure in words."""
    paper_value: float
    unit: Unit
    definition: str
    estimate: Estimate
    source: str | None
    sensitive_to: str = ""
    verdict: Verdict = "not measured"
    reason: str = ""
    caveats: tuple[str, ...] = ()
    companions: tuple[Companion, ...] = ()


def judge(claim: Claim, guard: Estimate | None = None, capped: bool = False) -> Claim:
    """Return the claim with its verdict and reason, by the rules above.

    `guard`, where given, must exclude "no effect" as well; `capped` says that the effect may come
    from dropped requests.
    """
    if claim.estimate.value is None:
        return replace(claim, verdict="not measured")
    verdict, reason = _verdict(claim.estimate, claim.unit, claim.paper_value, guard, capped)
    return replace(claim, verdict=verdict, reason=reason)


def judge_reading(
    reading: Companion, paper_value: float, guard: Estimate | None = None, capped: bool = False
) -> Companion:
    """Return another reading of a claim with its verdict and reason, by the same rules."""
    if reading.estimate.value is None:
        return replace(reading, verdict="not measured")
    verdict, reason = _verdict(reading.estimate, reading.unit, paper_value, guard, capped)
    return replace(reading, verdict=verdict, reason=reason)


def _verdict(
    estimate: Estimate, unit: Unit, paper_value: float, guard: Estimate | None, capped: bool
) -> tuple[Verdict, str]:
    value, low, high = estimate.value, estimate.low, estimate.high
    assert value is not None
    guard_low = low if guard is None else guard.low
    nothing = 1.0 if unit == "times" else 0.0
    no_effect, half_effect = nothing + ROUNDING, (paper_value + nothing) / 2
    contained = low is not None and high is not None and half_effect < low <= paper_value <= high
    verdict: Verdict
    if value <= no_effect:
        verdict, reason = "not reproduced", "no effect in the claimed direction"
    elif low is None or high is None:
        verdict = "not measured"
        reason = "one repeat gives no interval: the verdict needs repeats >= 2"
    elif low <= no_effect or guard_low is None or guard_low <= no_effect:
        verdict, reason = "not reproduced", "the interval does not exclude no effect"
    elif value < nothing + NAMEABLE * (paper_value - nothing):
        verdict = "not reproduced"
        reason = f"the effect is less than {NAMEABLE:.0%} of the paper's"
    elif value < paper_value and not contained:
        verdict, reason = "partly", "the effect is there, and smaller than the paper's"
    elif capped:
        verdict = "partly"
        reason = "the figure is reached, but the treatment drops requests that the baseline serves"
    else:
        verdict = "reproduced"
        reaches = "estimate reaches" if value >= paper_value else "interval contains"
        reason = f"the {reaches} the paper's figure, and the interval excludes no effect"
    return verdict, reason
