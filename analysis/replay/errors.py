"""Errors of the simulated episodes against the measured ones, arm by arm."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis import metrics
from analysis.frames import Run, load_run
from bellman.load.schedule import CONGESTED

MEASURED = "measured"
SIMULATED = "simulated"
TARGETS = {"e2e mean": 0.15, "completed": 0.05}
"""Largest error allowed, in every arm; the others have no target of their own."""

Metric = Callable[[Run, pd.DataFrame], float | None]


def latency(column: str, percent: float | None) -> Metric:
    """Return the metric that takes a latency's percentile, or its mean for None."""

    def of_requests(run: Run, requests: pd.DataFrame) -> float | None:
        congested = requests[requests["phase"] == CONGESTED]
        if percent is None:
            return metrics.latency_mean(congested, column)
        return metrics.latency_percentile(congested, column, percent)

    return of_requests


def completed(run: Run, requests: pd.DataFrame) -> float | None:
    """Return the requests whose last token came inside the congested phase, a repeat."""
    phase = run.phase(CONGESTED)
    if phase is None:
        return None
    inside = metrics.finished_inside(requests, phase.start_s, phase.end_s)
    return metrics.per(len(inside), requests["repeat"].nunique())


METRICS: dict[str, tuple[str, Metric]] = {
    "e2e mean": ("s", latency("e2e_s", None)),
    "e2e p50": ("s", latency("e2e_s", 50)),
    "e2e p90": ("s", latency("e2e_s", 90)),
    "e2e p99": ("s", latency("e2e_s", 99)),
    "ttft mean": ("s", latency("ttft_s", None)),
    "ttft p90": ("s", latency("ttft_s", 90)),
    "completed": ("requests", completed),
}
"""Unit and function, by name. Latencies are of the requests intended in the congested phase."""


def load(folder: Path) -> tuple[Run, Run]:
    """Return the measured and the simulated side of a gathered replay."""
    return load_run(folder, {"engine": MEASURED}), load_run(folder, {"engine": SIMULATED})


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one arm on both engines; None is not measured."""

    arm: str
    metric: str
    unit: str
    measured: float | None
    simulated: float | None
    error: float | None
    """simulated / measured - 1."""
    target: str
    """`met`, `missed`, or `n/a` where the metric has no target."""


def compare(measured: Run, simulated: Run) -> list[Comparison]:
    """Compare every metric of every arm."""
    found = []
    for arm in measured.arms:
        for name, (unit, metric) in METRICS.items():
            real, model = (
                metric(run, run.requests[run.requests["arm"] == arm])
                for run in (measured, simulated)
            )
            error = relative_error(real, model)
            found.append(Comparison(arm, name, unit, real, model, error, verdict(name, error)))
    return found


def relative_error(measured: float | None, simulated: float | None) -> float | None:
    """Return simulated / measured - 1; None where either has no finite value."""
    if measured is None or simulated is None or measured <= 0:
        return None
    if math.isinf(measured) or math.isinf(simulated):
        return None
    return simulated / measured - 1


def verdict(metric: str, error: float | None) -> str:
    """Say whether a target is met; n/a where there is none or no error."""
    if metric not in TARGETS or error is None:
        return "n/a"
    limit = TARGETS[metric]
    return f"{'met' if abs(error) <= limit else 'missed'} (within {limit:.0%})"
