"""The paper's claim about energy, which says "during periods of congestion": four readings of it.

The claim itself is the congested window, the same for both arms; per request, the whole episode and
each arm's own period of congestion stand beside it, each with its verdict.
"""

from dataclasses import replace

import numpy as np

from analysis import own_period
from analysis.congested_phase import PairedArms
from analysis.energy_pairs import EnergyPairs, pair_energy
from analysis.frames import Run, few
from analysis.losses import losses
from analysis.own_period import OWN_PERIOD, OwnPeriods
from analysis.statistics import Estimate, ratio, ratio_of_means
from analysis.verdict import Claim, Companion, judge, judge_reading
from bellman.load.schedule import CONGESTED

PER_REQUEST = "per request"
WHOLE_EPISODE = "whole episode"
FORMULA = f"{OWN_PERIOD}, by its formula"
AT_EQUAL_POWER = "the batch below which power leaves its plateau: above it both arms draw the same"


def energy(run: Run, treatment: str, pairs: PairedArms | str, own: OwnPeriods | str) -> Claim:
    """25 % less energy: GPU energy of the congested window, and the other readings of it."""
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
        sensitive_to=AT_EQUAL_POWER,
    )
    if isinstance(pairs, str):
        return replace(claim, reason=pairs)
    congested = pair_energy(run, pairs, CONGESTED)
    if isinstance(congested, str):
        return replace(claim, reason=congested)
    rows = [pairs.repeats.index(repeat) for repeat in congested.repeats]
    if not pairs.baseline_finished[rows].sum() or not pairs.treatment_finished[rows].sum():
        return replace(claim, reason="an arm completed nothing in the congested window")
    whole = pair_energy(run, pairs, "total")
    readings = [
        _per_request(pairs, congested, rows),
        _whole_episode(whole),
        _own_period(run, pairs, own),
    ]
    caveats, capped = losses(pairs, None)
    readings = [judge_reading(one, claim.paper_value, capped=capped) for one in readings]
    notes = list(pairs.notes)
    if len(congested.repeats) < len(pairs.repeats):
        read = f"{len(congested.repeats)} of {len(pairs.repeats)} repeats"
        notes.append(f"energy was read in {read}")
    doubts = [*congested.doubts, *([] if isinstance(whole, str) else whole.doubts)]
    if doubts:
        notes.append(f"doubtful: {few(doubts)}")
    notes += congested.engines
    claim = replace(
        claim,
        estimate=ratio(congested.treatment_j, congested.baseline_j).complement(),
        source=congested.source,
        companions=(*readings, *_by_formula(run)),
        caveats=(*caveats, *notes),
    )
    return judge(claim, capped=capped)


def _per_request(pairs: PairedArms, congested: EnergyPairs, rows: list[int]) -> Companion:
    estimate = ratio_of_means(
        congested.treatment_j,
        pairs.treatment_finished[rows],
        congested.baseline_j,
        pairs.baseline_finished[rows],
    ).complement()
    return Companion(
        PER_REQUEST,
        estimate,
        "less",
        "energy of the congested window / requests completed in it",
        sensitive_to="the requests served: at equal power it is 1 - 1 / (1 + more served)",
    )


def _whole_episode(whole: EnergyPairs | str) -> Companion:
    reading = Companion(
        WHOLE_EPISODE,
        Estimate(None),
        "less",
        "from the end of the warm-up to the end of the drain",
        sensitive_to="the length of calm and recovery, in which both arms draw about the same",
    )
    if isinstance(whole, str):
        return replace(reading, reason=whole)
    return replace(reading, estimate=ratio(whole.treatment_j, whole.baseline_j).complement())


def _own_period(run: Run, pairs: PairedArms, own: OwnPeriods | str) -> Companion:
    reading = Companion(
        OWN_PERIOD,
        Estimate(None),
        "less",
        "energy of each arm's own period of congestion: from the congested phase's begin until "
        f"the outstanding requests, sampled, are back within {own_period.BACK:g} x the calm "
        f"phase's largest of that episode, not before the phase ends, and stay there for "
        f"{own_period.STAYS_S:g} s",
        sensitive_to="recovery_load and overload, which set how long the backlog lasts; the calm "
        "phase's largest load",
    )
    if isinstance(own, str):
        return replace(reading, reason=own)
    base_j, treated_j = own_period.energy_j(run, pairs, own)
    both = ~np.isnan(base_j) & ~np.isnan(treated_j)
    if not both.any():
        return replace(reading, reason="the timeline has no energy at the edges of the periods")
    notes = list(own.notes)
    if not both.all():
        notes.append(f"energy of the own periods was read in {both.sum()} of {len(both)} repeats")
    lengths = ", ".join(
        f"{arm} {own.lengths_s(periods).mean():.0f} s"
        for arm, periods in ((pairs.baseline, own.baseline), (pairs.treatment, own.treatment))
    )
    estimate = ratio(treated_j[both], base_j[both]).complement()
    return replace(reading, estimate=estimate, caveats=(f"mean length: {lengths}", *notes))


def _by_formula(run: Run) -> list[Companion]:
    """Return what the own period's saving would be if nothing but its length changed."""
    expected = own_period.expected_saving(run)
    if expected is None:
        return []
    saving, of_what = expected
    definition = "1 - 1 / (1 + (rho - 1) / (1 - recovery)): no measurement; the treatment without "
    return [
        Companion(
            FORMULA,
            Estimate(saving),
            "less",
            f"{definition}a backlog, both arms at the same power, recovery without end; {of_what}",
        )
    ]
