"""The congested phase of a run as arrays over its paired repeats: what the claims are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis import metrics
from analysis.frames import Run
from analysis.statistics import Array, divide
from bellman.load.schedule import CONGESTED, Phase

WINDOW_S = 10.0
LOOKED_AT = ["repeat", "phase", "intended_s", "last_token_s", "ok", "e2e_s", "output_tokens"]
"""Columns of the requests: each part of them is a copy."""


@dataclass(frozen=True)
class Windows:
    """Sums over the whole 10 s windows of the phase, each of shape (repeats, windows)."""

    length_s: float
    starts_s: Array
    baseline_sum: Array
    """Seconds of e2e latency, summed over the ok requests intended in the window."""
    baseline_ok: Array
    """Number of those requests."""
    treatment_sum: Array
    treatment_ok: Array
    baseline_lost: Array
    """Share of the window's requests that did not end ok, repeats pooled; shape (windows,)."""
    treatment_lost: Array
    answered_inside: npt.NDArray[np.bool_]
    """Whether all answers of the window's ok requests, in both arms and all repeats, came before
    the phase ended: later ones meet a load that has dropped; shape (windows,)."""


@dataclass(frozen=True)
class PairedArms:
    """Baseline and one treatment in the congested phase, over the complete repeats."""

    baseline: str
    treatment: str
    notes: tuple[str, ...]
    """What a reader of the comparison must know."""
    repeats: list[int]
    windows: Windows
    baseline_e2e_s: list[Array]
    """One array a repeat over the requests intended in the phase, failures +inf."""
    treatment_e2e_s: list[Array]
    baseline_lost: float
    """Share of the phase's requests that did not end ok, repeats pooled."""
    treatment_lost: float
    baseline_finished: Array
    """Requests whose last token came inside the phase, one number a repeat."""
    treatment_finished: Array
    baseline_tokens: Array
    """Output tokens of those requests; NaN for a repeat where any is unknown."""
    treatment_tokens: Array


def pair_arms(run: Run, treatment: str) -> PairedArms | str:
    """Put the congested phase of the baseline and `treatment` side by side, or say why not."""
    phase = run.phase(CONGESTED)
    repeats = run.complete_repeats(treatment)
    if phase is None:
        return f"the schedule has no phase `{CONGESTED}`"
    if not repeats:
        return f"no repeat ran to its end under {run.baseline} and under {treatment}"
    if phase.length_s < WINDOW_S:
        return f"the congested phase of {phase.length_s:g} s holds no 10-second window"
    known = sorted(set(run.requests["repeat"]))
    notes = () if len(known) == len(repeats) else (f"{len(repeats)} of {len(known)} repeats",)
    base, treated = (by_repeat(run, arm, repeats) for arm in (run.baseline, treatment))
    base_phase, treated_phase = _intended_in(base, phase), _intended_in(treated, phase)
    base_done, treated_done = _finished_in(base, phase), _finished_in(treated, phase)
    both = ((run.baseline, base, base_phase), (treatment, treated, treated_phase))
    for arm, of_arm, in_phase in both:
        if not any(len(rows) for rows in in_phase):
            return f"{arm}: no request was intended in the congested phase"
        endless = sum(int(metrics.unknown(rows, "e2e_s").sum()) for rows in of_arm)
        if endless:
            return f"{arm}: of {endless} ok requests it is unknown when their last token came"
    return PairedArms(
        baseline=run.baseline,
        treatment=treatment,
        notes=notes,
        repeats=repeats,
        windows=windows_of(phase, base_phase, treated_phase),
        baseline_e2e_s=[metrics.failures_as_infinity(rows, "e2e_s") for rows in base_phase],
        treatment_e2e_s=[metrics.failures_as_infinity(rows, "e2e_s") for rows in treated_phase],
        baseline_lost=_lost_share(base_phase),
        treatment_lost=_lost_share(treated_phase),
        baseline_finished=np.array([float(len(rows)) for rows in base_done]),
        treatment_finished=np.array([float(len(rows)) for rows in treated_done]),
        baseline_tokens=_tokens(base_done),
        treatment_tokens=_tokens(treated_done),
    )


def by_repeat(run: Run, arm: str, repeats: Sequence[int]) -> list[pd.DataFrame]:
    """Return what is looked at of the requests of an arm, a frame a repeat."""
    rows = run.requests.loc[run.requests["arm"] == arm, LOOKED_AT]
    return [rows[rows["repeat"] == repeat] for repeat in repeats]


def _intended_in(repeats: list[pd.DataFrame], phase: Phase) -> list[pd.DataFrame]:
    return [rows[rows["phase"] == phase.name] for rows in repeats]


def _finished_in(repeats: list[pd.DataFrame], phase: Phase) -> list[pd.DataFrame]:
    return [metrics.finished_inside(rows, phase.start_s, phase.end_s) for rows in repeats]


def _lost_share(repeats: list[pd.DataFrame]) -> float:
    return 1.0 - sum(map(metrics.completed, repeats)) / sum(map(len, repeats))


def _tokens(repeats: list[pd.DataFrame]) -> Array:
    return np.array([float(rows["output_tokens"].sum(skipna=False)) for rows in repeats])


def windows_of(
    phase: Phase, baseline: list[pd.DataFrame], treatment: list[pd.DataFrame]
) -> Windows:
    """Cut a phase into windows; of each repeat's requests those intended in it are counted."""
    count = int(phase.length_s / WINDOW_S + 1e-9)
    base_sum, base_ok, base_all = _window_sums(phase, baseline, count)
    treated_sum, treated_ok, treated_all = _window_sums(phase, treatment, count)
    return Windows(
        length_s=WINDOW_S,
        starts_s=phase.start_s + WINDOW_S * np.arange(count, dtype=np.float64),
        baseline_sum=base_sum,
        baseline_ok=base_ok,
        treatment_sum=treated_sum,
        treatment_ok=treated_ok,
        baseline_lost=1.0 - divide(base_ok.sum(axis=0), base_all.sum(axis=0)),
        treatment_lost=1.0 - divide(treated_ok.sum(axis=0), treated_all.sum(axis=0)),
        answered_inside=_answered_inside(phase, [*baseline, *treatment], count),
    )


def _window_sums(
    phase: Phase, repeats: list[pd.DataFrame], count: int
) -> tuple[Array, Array, Array]:
    """Return e2e seconds of ok requests, their number, and all requests: (repeats, windows)."""
    sums, oks, alls = (np.zeros((len(repeats), count)) for _ in range(3))
    for row, requests in enumerate(repeats):
        window = ((requests["intended_s"] - phase.start_s) / WINDOW_S).to_numpy(dtype=np.float64)
        inside = (window >= 0) & (window < count)  # a last, shorter window is left out
        number = window[inside].astype(np.int64)
        ok = requests["ok"].to_numpy(dtype=bool)[inside]
        e2e_s = requests["e2e_s"].to_numpy(dtype=np.float64)[inside]
        sums[row] = np.bincount(number[ok], weights=e2e_s[ok], minlength=count)
        oks[row] = np.bincount(number[ok], minlength=count)
        alls[row] = np.bincount(number, minlength=count)
    return sums, oks, alls


def _answered_inside(
    phase: Phase, episodes: list[pd.DataFrame], count: int
) -> npt.NDArray[np.bool_]:
    requests = pd.concat(episodes)
    late = requests[requests["ok"] & (requests["last_token_s"] >= phase.end_s)]
    windows = ((late["intended_s"] - phase.start_s) // WINDOW_S).to_numpy(dtype=np.int64)
    return np.asarray(~np.isin(np.arange(count), windows))
