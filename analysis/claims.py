"""The paper's three claims, computed from a run as docs/analysis.md defines them.

Each function takes the run, the treatment's name, and the paired arms or the reason why there are
none. The rules of the verdicts are in `analysis.verdict`.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from analysis import metrics
from analysis.congested_phase import PairedArms, pair_arms
from analysis.energy_pairs import pair_energy
from analysis.frames import Run, few
from analysis.statistics import Array, Estimate, Index, bootstrap, divide, ratio, ratio_of_means
from analysis.verdict import Claim, Companion, judge
from bellman.load.schedule import CONGESTED

OUTSTANDING = 1.1
"""Largest over second largest window, above which the largest is an exception."""
LOSS_MARGIN = 0.01
"""Share of requests that one arm may lose beyond the other before it matters."""


def assess(run: Run) -> list[Claim]:
    """Assess every claim for every treatment of a run, over its complete repeats."""
    claims: list[Claim] = []
    for treatment in run.treatments:
        pairs = pair_arms(run, treatment)
        claims += [claim(run, treatment, pairs) for claim in (latency, energy, served)]
    claims = [
        claim if of_the_paper(run, claim.treatment) else not_the_papers(claim, run)
        for claim in claims
    ]
    if run.invalid_reasons:
        reason = f"invalid run: {run.invalid_text}"
        claims = [replace(c, verdict="not measured", reason=reason) for c in claims]
    return claims


def of_the_paper(run: Run, treatment: str) -> bool:
    """Whether the arm stands for the paper's, so that the paper's figures are claims about it."""
    return run.paper_arm in {None, treatment}


def not_the_papers(claim: Claim, run: Run) -> Claim:
    """Return what another arm did, without a verdict: the paper says nothing of it."""
    reason = f"no claim of the paper: paper_arm is {run.paper_arm}"
    return replace(
        claim, verdict="no claim", reason=claim.reason if claim.estimate.value is None else reason
    )


def latency(run: Run, treatment: str, pairs: PairedArms | str) -> Claim:
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
    every_window = np.full(len(windows.starts_s), True)
    estimate = _largest_ratio(pairs, every_window)
    if estimate.value is None:
        reason = "no 10-second window of the congested phase has finished requests in both arms"
        return replace(claim, reason=reason)
    every_repeat = np.arange(len(pairs.repeats))[None, :]
    ratios = _window_ratios(pairs, every_repeat)[0]
    at = int(np.nanargmax(ratios))
    from_s = windows.starts_s[at]
    caveats, capped = _losses(pairs, at)
    whole = ratio_of_means(
        windows.baseline_sum.sum(axis=1),
        windows.baseline_ok.sum(axis=1),
        windows.treatment_sum.sum(axis=1),
        windows.treatment_ok.sum(axis=1),
    )
    place = f"largest at {from_s:.0f}-{from_s + windows.length_s:.0f} s of the episode"
    phase = run.phase(CONGESTED)
    if phase is not None and run.above_capacity(phase):
        place += f", of {phase.length_s:g} s above capacity: latencies grow with that length"
    companions = [
        Companion("mean of the whole phase", whole, "times", "ratio of means over ok requests"),
        Companion(
            "largest, answered inside the phase",
            _largest_ratio(pairs, windows.answered_inside),
            "times",
            "largest ratio over the windows whose answers, in both arms, all came before the "
            "phase ended: those after it met a load that had dropped",
        ),
        _percentile_ratio(pairs, 50),
        _percentile_ratio(pairs, 99),
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


def energy(run: Run, treatment: str, pairs: PairedArms | str) -> Claim:
    """25 % less energy: GPU energy of the congested window."""
    claim = Claim(
        name="energy",
        treatment=treatment,
        paper="25 % less",
        paper_value=0.25,
        unit="less",
        definition="1 - GPU energy of the congested window, "
        f"{treatment} / {run.baseline}; repeats summed",
        estimate=Estimate(None),
        source=None,
    )
    if isinstance(pairs, str):
        return replace(claim, reason=pairs)
    congested = pair_energy(run, pairs, CONGESTED)
    if isinstance(congested, str):
        return replace(claim, reason=congested)
    base_j, treated_j = congested.baseline_j, congested.treatment_j
    rows = [pairs.repeats.index(repeat) for repeat in congested.repeats]
    base_done, treated_done = pairs.baseline_finished[rows], pairs.treatment_finished[rows]
    if not base_done.sum() or not treated_done.sum():
        return replace(claim, reason="an arm completed nothing in the congested window")
    per_request = ratio_of_means(treated_j, treated_done, base_j, base_done).complement()
    companions = [
        Companion(
            "per request",
            per_request,
            "less",
            "energy of the congested window / requests completed in it",
        )
    ]
    doubts = list(congested.doubts)
    whole = pair_energy(run, pairs, "total")
    if not isinstance(whole, str):
        doubts += whole.doubts
        companions.append(
            Companion(
                "whole episode",
                ratio(whole.treatment_j, whole.baseline_j).complement(),
                "less",
                "from the end of the warm-up to the end of the drain",
            )
        )
    caveats, capped = _losses(pairs, None)
    notes = list(pairs.notes)
    if len(congested.repeats) < len(pairs.repeats):
        read = f"{len(congested.repeats)} of {len(pairs.repeats)} repeats"
        notes.append(f"energy was read in {read}")
    if doubts:
        notes.append(f"doubtful: {few(doubts)}")
    claim = replace(
        claim,
        estimate=ratio(treated_j, base_j).complement(),
        source=congested.source,
        companions=tuple(companions),
        caveats=(*caveats, *notes),
    )
    return judge(claim, capped=capped)


def served(run: Run, treatment: str, pairs: PairedArms | str) -> Claim:
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
    claim = replace(claim, estimate=estimate, companions=(companion,), caveats=tuple(notes))
    return judge(claim)


def _window_ratios(pairs: PairedArms, index: Index) -> Array:
    """Return baseline / treatment mean e2e, shape (resamples, windows)."""
    windows = pairs.windows

    def pooled_mean(sums: Array, counts: Array) -> Array:
        return divide(sums[index].sum(axis=1), counts[index].sum(axis=1))

    return divide(
        pooled_mean(windows.baseline_sum, windows.baseline_ok),
        pooled_mean(windows.treatment_sum, windows.treatment_ok),
    )


def _largest_ratio(pairs: PairedArms, chosen: npt.NDArray[np.bool_]) -> Estimate:
    """Estimate the largest ratio over the chosen windows."""

    def statistic(index: Index) -> Array:
        ratios = _window_ratios(pairs, index)[:, chosen]
        known = ~np.isnan(ratios)
        largest = np.where(known, ratios, -np.inf).max(axis=1, initial=-np.inf)
        return np.where(known.any(axis=1), largest, np.nan)

    return bootstrap(statistic, len(pairs.repeats), is_ratio=True)


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


def _losses(pairs: PairedArms, window: int | None) -> tuple[list[str], bool]:
    """Name the requests lost, and say whether they cap the verdict."""
    caveats: list[str] = []
    base, treated = pairs.baseline_lost, pairs.treatment_lost
    if base or treated:
        caveats.append(
            f"lost in the congested phase: {pairs.baseline} {base:.1%}, "
            f"{pairs.treatment} {treated:.1%}; means are over the rest"
        )
    capped = treated - base > LOSS_MARGIN
    if base - treated > LOSS_MARGIN:
        caveats.append(f"{pairs.baseline} loses more, which understates the effect")
    if window is not None:
        windows = pairs.windows
        base_w, treated_w = windows.baseline_lost[window], windows.treatment_lost[window]
        if treated_w - base_w > LOSS_MARGIN:
            capped = True
            caveats.append(
                f"in the window of the largest ratio {pairs.treatment} loses {treated_w:.1%}, "
                f"{pairs.baseline} {base_w:.1%}"
            )
    return caveats, capped
