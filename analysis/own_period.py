"""Each arm's own period of congestion: from the rate step until its load is back at the calm one's.

The load is the requests outstanding in the engine, running and waiting, as the timeline samples
them. The period begins with the congested phase. It ends with the first sample, not before that
phase's end, that is at most `BACK` times the largest of the same episode's calm phase and is
followed by none above that for `STAYS_S`: a lone sample on the way down is no return.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis import metrics
from analysis.congested_phase import PairedArms, by_repeat
from analysis.frames import Run
from analysis.statistics import Array
from bellman.load.schedule import CALM, CONGESTED, RECOVERY, Phase

OWN_PERIOD = "own period"
BACK = 1.1
"""Share of the calm phase's largest load up to which a load is back."""
STAYS_S = 10.0
"""How long it must stay there."""
STILL_THERE = "not back when the episode ended"
BACK_WITHOUT_LOAD = "back only after the last request was sent"


@dataclass(frozen=True)
class OwnPeriod:
    """The period of one episode, seconds since the episode's start."""

    start_s: float
    end_s: float
    cut: str | None = None
    """Why it would have been longer had the load gone on; None where its end was seen."""

    @property
    def length_s(self) -> float:
        """Seconds from start to end."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class OwnPeriods:
    """The periods of both arms, over the repeats that have them."""

    repeats: list[int]
    baseline: list[OwnPeriod]
    treatment: list[OwnPeriod]
    notes: tuple[str, ...]
    """What a reader of anything counted in them must know."""

    def lengths_s(self, periods: list[OwnPeriod]) -> Array:
        """Return the lengths of the periods of an arm."""
        return np.array([period.length_s for period in periods])

    @property
    def last_end_s(self) -> float:
        """When the last of all is over."""
        return max(period.end_s for period in (*self.baseline, *self.treatment))


def own_period(ticks: pd.DataFrame, phases: tuple[Phase, ...]) -> OwnPeriod | str:
    """Return the period of the episode with these samples, or why there is none."""
    calm, congested = (
        next((phase for phase in phases if phase.name == name), None) for name in (CALM, CONGESTED)
    )
    if calm is None or congested is None:
        return f"the schedule has no phase `{CALM if calm is None else CONGESTED}`"
    if ticks.empty:
        return "no timeline was recorded"
    outstanding = (ticks["waiting"] + ticks["running"]).to_numpy(dtype=np.float64)
    known = ~np.isnan(outstanding)
    times_s, outstanding = ticks["time_s"].to_numpy(dtype=np.float64)[known], outstanding[known]
    in_calm = (times_s >= calm.start_s) & (times_s < calm.end_s)
    if not in_calm.any():
        return "the outstanding requests of the calm phase are unknown"
    after = times_s >= congested.end_s
    if not after.any():
        return "the outstanding requests after the congested phase are unknown"
    times_s, above = times_s[after], outstanding[after] > BACK * outstanding[in_calm].max()
    next_above_s = np.minimum.accumulate(np.where(above, times_s, np.inf)[::-1])[::-1]
    back = np.flatnonzero(next_above_s - times_s > STAYS_S)
    if not len(back):
        return OwnPeriod(congested.start_s, float(times_s[-1]), STILL_THERE)
    end_s = float(times_s[back[0]])
    cut = BACK_WITHOUT_LOAD if end_s > phases[-1].end_s else None
    return OwnPeriod(congested.start_s, end_s, cut)


def own_periods(run: Run, pairs: PairedArms | str) -> OwnPeriods | str:
    """Return the periods of both arms in every repeat that has them, or why none has."""
    if isinstance(pairs, str):
        return pairs
    if run.timeline.empty:
        return "no timeline was recorded"
    found: dict[int, tuple[OwnPeriod, OwnPeriod]] = {}
    reasons: list[str] = []
    for repeat in pairs.repeats:
        base, treated = (
            own_period(samples(run, arm, repeat), run.phases)
            for arm in (pairs.baseline, pairs.treatment)
        )
        if isinstance(base, str) or isinstance(treated, str):
            reasons += [one for one in (base, treated) if isinstance(one, str)]
        else:
            found[repeat] = base, treated
    if not found:
        return reasons[0]
    baseline, treatment = ([both[place] for both in found.values()] for place in (0, 1))
    notes = []
    if len(found) < len(pairs.repeats):
        known = f"known in {len(found)} of {len(pairs.repeats)} repeats"
        notes.append(f"own period {known}: {reasons[0]}")
    notes += _cut_short(pairs.baseline, baseline) + _cut_short(pairs.treatment, treatment)
    return OwnPeriods(list(found), baseline, treatment, tuple(notes))


def samples(run: Run, arm: str, repeat: int) -> pd.DataFrame:
    """Return the timeline of one episode."""
    ticks = run.timeline
    return ticks[(ticks["arm"] == arm) & (ticks["repeat"] == repeat)]


def finished(run: Run, pairs: PairedArms, own: OwnPeriods) -> tuple[Array, Array]:
    """Return the requests whose last token came inside the period, of both arms, a repeat each."""

    def of_arm(arm: str, periods: list[OwnPeriod]) -> Array:
        pieces = zip(by_repeat(run, arm, own.repeats), periods, strict=True)
        counts = [
            metrics.count_finished_inside(requests, period.start_s, period.end_s)
            for requests, period in pieces
        ]
        return np.array(counts, dtype=np.float64)

    return of_arm(pairs.baseline, own.baseline), of_arm(pairs.treatment, own.treatment)


def energy_j(run: Run, pairs: PairedArms, own: OwnPeriods) -> tuple[Array, Array]:
    """Return the joules of the period, of both arms, a repeat each; NaN where they are unknown."""

    def of_arm(arm: str, periods: list[OwnPeriod]) -> Array:
        joules = [
            metrics.counted(samples(run, arm, repeat), "energy_j", period.start_s, period.end_s)
            for repeat, period in zip(own.repeats, periods, strict=True)
        ]
        return np.array([np.nan if value is None else value for value in joules])

    return of_arm(pairs.baseline, own.baseline), of_arm(pairs.treatment, own.treatment)


def expected_saving(run: Run) -> tuple[float, str] | None:
    """Return what the energy of the own period would fall by if nothing but its length changed.

    While overloaded by rho the backlog grows by (rho - 1) x capacity, and is worked off at
    (1 - recovery) x capacity: the uncontrolled period is 1 + (rho - 1) / (1 - recovery) times that
    of an arm without a backlog, at the same power. None where a rate is unknown, or where nothing
    is ever worked off (recovery >= 1).
    """
    congested, recovery = run.phase(CONGESTED), run.phase(RECOVERY)
    capacity_rps = run.capacity.get("capacity_rps")
    if congested is None or recovery is None or not capacity_rps:
        return None
    rho, left = congested.rate_rps / capacity_rps, recovery.rate_rps / capacity_rps
    if np.isnan(rho) or np.isnan(left) or left >= 1:
        return None
    saving = 1 - 1 / (1 + max(rho - 1, 0.0) / (1 - left))
    return saving, f"rho {rho:.3g}, recovery {left:.3g} of the capacity"


def _cut_short(arm: str, periods: list[OwnPeriod]) -> list[str]:
    reasons = [period.cut for period in periods if period.cut]
    return [
        f"own period a lower bound: {arm} in {reasons.count(reason)} of {len(periods)} repeats "
        f"({reason})"
        for reason in dict.fromkeys(reasons)
    ]
