"""Errors of the simulated engine against measured steady states, and the targets they have."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

STEADY_STATES = "steady_states.parquet"
METRICS = {
    "itl_median_ms": "median ITL",
    "itl_p90_ms": "p90 ITL",
    "itl_p99_ms": "p99 ITL",
    "output_tokens_per_s": "output tokens/s",
    "watts": "watts",
    "joules_per_token": "J/token",
}
SPLITS = {
    "as it is": "the profile as it is",
    "swapped": "fitted again on the other half",
    "small_to_large": "fitted again on batch limits up to 128",
    "large_to_small": "fitted again on batch limits from 192",
}
"""How the rows were split, by the records' word for it."""
AS_IT_IS = "as it is"
TARGETS = {
    "itl_median_ms": (0.05, 0.10),
    "itl_p90_ms": (0.10, 0.20),
    "itl_p99_ms": (0.10, 0.20),
    "output_tokens_per_s": (0.05, 0.10),
    "watts": (0.04, 0.08),
}
"""Median and largest error allowed on judged rows; J/token has none of its own."""


@dataclass(frozen=True)
class ErrorSummary:
    """The errors of one metric over some rows; NaN where any of them is unknown."""

    median: float
    largest: float
    rows: int


def load(folder: Path) -> pd.DataFrame:
    """Return the records of a validation run with a relative error a metric."""
    frame = pd.read_parquet(folder / STEADY_STATES)
    for metric in METRICS:
        measured = f"{metric}_measured"
        frame[measured] = frame[measured].astype(float)  # a column of nulls has no type of its own
        frame[f"{metric}_error"] = frame[f"{metric}_simulated"] / frame[measured] - 1
    return frame


def summarize(frame: pd.DataFrame, metric: str) -> ErrorSummary:
    """Return median and largest absolute error of a metric over the frame's rows."""
    errors = np.abs(frame[f"{metric}_error"].to_numpy(float))
    return ErrorSummary(float(np.median(errors)), float(errors.max()), len(errors))


def verdict(summary: ErrorSummary, metric: str) -> str:
    """Say whether the targets are met; n/a where there are none, or an error is unknown."""
    if metric not in TARGETS or math.isnan(summary.largest):
        return "n/a"
    median, largest = TARGETS[metric]
    met = summary.median <= median and summary.largest <= largest
    return f"{'met' if met else 'missed'} ({median:.0%}, {largest:.0%})"
