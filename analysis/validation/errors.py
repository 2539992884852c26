"""Errors of the simulated engine against measured steady states, and the targets they have."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

STEADY_STATES = "steady_states.parquet"
METRICS = {
    "itl_median_ms": "median ITL",
    "output_tokens_per_s": "output tokens/s",
    "watts": "watts",
    "joules_per_token": "J/token",
}
TARGETS = {
    "itl_median_ms": (0.05, 0.10),
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
        frame[f"{metric}_error"] = frame[f"{metric}_simulated"] / frame[f"{metric}_measured"] - 1
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
    return "met" if summary.median <= median and summary.largest <= largest else "missed"
