"""The paper's three claims, computed from a run as docs/analysis.md defines them.

Each function takes the run, the treatment's name, the paired arms and their own periods of
congestion, or the reasons why there are none. The rules of the verdicts are in `analysis.verdict`,
the claim about energy in `analysis.energy_claim`.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from analysis import metrics
from analysis.congested_phase import (
    WINDOW_S,
    PairedArms,
    Windows,
    by_repeat,
    pair_arms,
    windows_of,
)
from analysis.energy_claim import energy
from analysis.frames import Run
from analysis.losses import losses
from analysis.own_period import OWN_PERIOD, OwnPeriods, finished, own_periods
from analysis.statistics import Array, Estimate, Index, bootstrap, divide, ratio, ratio_of_means
from analysis.verdict import Claim, Companion, Verdict, judge, judge_reading
from bellman.load.schedule import CONGESTED, Phase

OUTSTANDING = 1.1
"""Largest over second largest window, above which the largest is an exception."""


NOTHING_FINISHED = "no 10-second window has finished requests in both arms"


def assess(run: Run) -> list[Claim]:
    """Assess every claim for every treatment of a run, over its complete repeats."""
    claims: list[Claim] = []
    for treatment in run.treatments:
        pairs = pair_arms(run, treatment)
        own = own_periods(run, pairs)
        claims += [claim(run, treatment, pairs, own) for claim in (latency, energy, served)]
    claims = [
        claim if of_the_paper(run, claim.treatment) else not_the_papers(claim, run)
        for claim in claims
    ]
    if run.invalid_reasons:
        reason = f"invalid run: {run.invalid_text}"
        claims = [_with_verdict(claim, "not measured", reason) for claim in claims]
    return claims


def _with_verdict(claim: Claim, verdict: Verdict, reason: str) -> Claim:
    """Return the claim, and every reading of it, with another verdict."""
    companions = tuple(
        one if one.verdict is None else replace(one, verdict=verdict, reason=reason)
        for one in claim.companions
    )
    return replace(claim, verdict=verdict, reason=reason, companions=companions)


def of_the_paper(run: Run, treatment: str) -> bool:
    """Whether the arm stands for the paper's, so that the paper's figures are claims about it."""
    return run.paper_arm in {None, treatment}


def not_the_papers(claim: Claim, run: Run) -> Claim:
    """Return what another arm did, without a verdict: the paper says nothing of it."""
    reason = f"no claim of the paper: paper_arm is {run.paper_arm}"
    return _with_verdict(
        claim, "no claim", claim.reason if claim.estimate.value is None else reason
    )


def latency(run: Run, treatment: str, pairs: PairedArms | str, own: OwnPeriods | str) -> Claim:
    """Up to 8x lower e2e latency: the largest ratio over 10 s windows of the congested phase."""
    claim = Claim(
        name="end-to-end latency",
        treatment=treatment,
        paper="up to 8x lower",
        paper_value=8.0,
        unit="times",
        definition="largest ratio, over 10-second windows of the congested phase (by intended send "
        f"time), of mean e2e latency, {run.baseline} / {treatment}; ok requests, repeats pooled",
        estimate=Estimate(None),
        source=run.source,
    )
    if isinstance(pairs, str):
        return replace(claim, reason=pairs)
    windows = pairs.windows
    estimate = _largest_ratio(windows)
    if estimate.value is None:
        return replace(claim, reason=NOTHING_FINISHED)
    ratios = _window_ratios(windows, _every(windows))[0]
    at = int(np.nanargmax(ratios))
    from_s = windows.starts_s[at]
    caveats, capped = losses(pairs, at)
    whole = _mean_ratio(windows)
    place = f"largest at {from_s:.0f}-{from_s + windows.length_s:.0f} s of the episode"
    phase = run.phase(CONGESTED)
    if phase is not None and run.above_capacity(phase):
        place += f", of {phase.length_s:g} s above capacity: latencies grow with that length"
    companions = [
        Companion("mean of the whole phase", whole, "times", "ratio of means over ok requests"),
        Companion(
            "largest, answered inside the phase",
            _largest_ratio(windows, windows.answered_inside),
            "times",
            "largest ratio over the windows whose answers, in both arms, all came before the "
            "phase ended: those after it met a load that had dropped",
        ),
        _percentile_ratio(pairs, 50),
        _percentile_ratio(pairs, 99),
        _own_latency(run, pairs, own, paper_value=claim.paper_value, capped=capped),
    ]
    claim = replace(
        claim,
        estimate=estimate,
        companions=tuple(companions),
        caveats=(place, *_outstanding(ratios), *caveats, *pairs.notes),
    )
    judged = judge(claim, guard=whole, capped=capped)
    second = _second_largest(ratios)
    if judged.verdict == "reproduced" and second < claim.paper_value <= ratios[at]:
        return replace(judged, reason=f"{judged.reason}; but one window alone reaches the figure")
    return judged


def served(run: Run, treatment: str, pairs: PairedArms | str, own: OwnPeriods | str) -> Claim:
    """19 % more requests served: completed inside the congested window."""
    claim = Claim(
        name="requests served",
        treatment=treatment,
        paper="19 % more",
        paper_value=0.19,
        unit="more",
        definition="requests whose last token came inside the congested window, "
        f"{treatment} / {run.baseline} - 1; repeats summed",
        estimate=Estimate(None),
        source=run.source,
    )
    if isinstance(pairs, str):
        return replace(claim, reason=pairs)
    estimate = ratio(pairs.treatment_finished, pairs.baseline_finished).plus(-1.0)
    if estimate.value is None:
        return replace(claim, reason=f"{run.baseline} completed nothing in the congested window")
    tokens = ratio(pairs.treatment_tokens, pairs.baseline_tokens).plus(-1.0)
    notes = list(pairs.notes)
    if tokens.value is None:
        notes.append("output tokens served: n/a, of some requests they are unknown")
    companion = Companion(
        "output tokens served", tokens, "more", "output tokens of those requests: served, shorter"
    )
    companions = (companion, _own_served(run, pairs, own, claim.paper_value))
    claim = replace(claim, estimate=estimate, companions=companions, caveats=tuple(notes))
    return judge(claim)


def _own_latency(
    run: Run, pairs: PairedArms, own: OwnPeriods | str, *, paper_value: float, capped: bool
) -> Companion:
    """Return the latency claim over both arms' own periods of congestion."""
    reading = Companion(
        OWN_PERIOD,
        Estimate(None),
        "times",
        "largest ratio over the 10-second windows from the rate step until both arms are back in "
        "all repeats, with those after the load has dropped, which help the faster arm",
        sensitive_to="recovery_load, and all that the largest ratio is sensitive to",
    )
    if isinstance(own, str):
        return judge_reading(replace(reading, reason=own), paper_value)
    start_s = own.baseline[0].start_s
    end_s = max(min(own.last_end_s, run.phases[-1].end_s), start_s + WINDOW_S)
    base, treated = (by_repeat(run, arm, own.repeats) for arm in (pairs.baseline, pairs.treatment))
    windows = windows_of(Phase(OWN_PERIOD, start_s, end_s, np.nan), base, treated)
    estimate, ratios = _largest_ratio(windows), _window_ratios(windows, _every(windows))[0]
    if estimate.value is None:
        return judge_reading(replace(reading, reason=NOTHING_FINISHED), paper_value)
    at_s = windows.starts_s[int(np.nanargmax(ratios))]
    place = f"largest at {at_s:.0f}-{at_s + WINDOW_S:.0f} s of the episode"
    congested = run.phase(CONGESTED)
    if congested is not None and at_s >= congested.end_s:
        place += ", after the load had dropped"
    reading = replace(reading, estimate=estimate, caveats=(place, *own.notes))
    return judge_reading(reading, paper_value, guard=_mean_ratio(windows), capped=capped)


def _own_served(
    run: Run, pairs: PairedArms, own: OwnPeriods | str, paper_value: float
) -> Companion:
    """Return the requests served per second of each arm's own period of congestion."""
    reading = Companion(
        OWN_PERIOD,
        Estimate(None),
        "more",
        "requests whose last token came inside the arm's own period of congestion / its length, "
        f"{pairs.treatment} / {pairs.baseline} - 1: the periods differ in length, so per second",
        sensitive_to="recovery_load, overload",
    )
    if isinstance(own, str):
        return judge_reading(replace(reading, reason=own), paper_value)
    base, treated = finished(run, pairs, own)
    estimate = ratio_of_means(
        treated, own.lengths_s(own.treatment), base, own.lengths_s(own.baseline)
    ).plus(-1.0)
    return judge_reading(replace(reading, estimate=estimate, caveats=own.notes), paper_value)


def _window_ratios(windows: Windows, index: Index) -> Array:
    """Return baseline / treatment mean e2e, shape (resamples, windows)."""

    def pooled_mean(sums: Array, counts: Array) -> Array:
        return divide(sums[index].sum(axis=1), counts[index].sum(axis=1))

    return divide(
        pooled_mean(windows.baseline_sum, windows.baseline_ok),
        pooled_mean(windows.treatment_sum, windows.treatment_ok),
    )


def _every(windows: Windows) -> Index:
    """Return the one sample that has every repeat once."""
    return np.arange(len(windows.baseline_sum))[None, :]


def _mean_ratio(windows: Windows) -> Estimate:
    """Estimate the ratio of the means over all windows' ok requests."""
    return ratio_of_means(
        windows.baseline_sum.sum(axis=1),
        windows.baseline_ok.sum(axis=1),
        windows.treatment_sum.sum(axis=1),
        windows.treatment_ok.sum(axis=1),
    )


def _largest_ratio(windows: Windows, chosen: npt.NDArray[np.bool_] | None = None) -> Estimate:
    """Estimate the largest ratio over the chosen windows, or over all."""

    def statistic(index: Index) -> Array:
        ratios = _window_ratios(windows, index)
        ratios = ratios if chosen is None else ratios[:, chosen]
        known = ~np.isnan(ratios)
        largest = np.where(known, ratios, -np.inf).max(axis=1, initial=-np.inf)
        return np.where(known.any(axis=1), largest, np.nan)

    return bootstrap(statistic, len(windows.baseline_sum), is_ratio=True)


def _second_largest(ratios: Array) -> float:
    known = np.sort(ratios[~np.isnan(ratios)])
    return float(known[-2]) if len(known) > 1 else 0.0


def _outstanding(ratios: Array) -> list[str]:
    """Name the second largest window's ratio where the largest stands out."""
    second = _second_largest(ratios)
    if float(np.nanmax(ratios)) <= OUTSTANDING * second:
        return []
    return [f"the largest stands out: the second largest window reaches {second:.3g}x"]


def _percentile_ratio(pairs: PairedArms, percent: float) -> Companion:
    def of_each_repeat(e2e_s: list[Array]) -> Array:
        return np.array([metrics.percentile(values, percent) for values in e2e_s], dtype=np.float64)

    base, treated = of_each_repeat(pairs.baseline_e2e_s), of_each_repeat(pairs.treatment_e2e_s)
    definition = f"ratio of the mean p{percent:g} of the repeats; lost requests are +inf"
    return Companion(f"p{percent:g} of the phase", ratio(base, treated), "times", definition)
