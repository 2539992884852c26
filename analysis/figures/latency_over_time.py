"""End-to-end latency over the intended send time."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.congested_phase import pair_arms
from analysis.figures import style
from analysis.figures.over_time import draw_lines
from analysis.frames import Run
from analysis.statistics import divide

POSITION = 1
BIN_S = 10.0
"""The windows of the paper's latency claim, in s."""


def draw(run: Run) -> Figure:
    """Draw the mean e2e latency of each 10 s window, with the range over repeats."""
    figure, axes = plt.subplots(figsize=(style.WIDTH_IN, 2.3))
    means = window_means(run)
    if means.empty:
        style.not_measured(axes, "e2e latency", "no request ended ok")
    else:
        style.shade_congestion(run, axes, label=True)
        draw_lines(run, axes, means, "e2e_s")
        style.log_seconds(axes, "y")
        style.time_axis(run, axes)
        axes.set_ylabel("e2e latency (s)")
        _mark_largest_ratio(run, axes)
    style.legend(run, figure, axes)
    text = "Mean over the requests intended in each 10 s window that ended ok; band: smallest to "
    style.caption(run, figure, text + "largest repeat. Latency counts from the intended send time.")
    return figure


def window_means(run: Run) -> pd.DataFrame:
    """Return time_s (window's middle), arm, repeat and mean e2e_s of ok requests."""
    ok = run.requests[run.requests["ok"]]
    origin_s = run.counted_phases[0].start_s if run.counted_phases else 0.0
    number = np.floor((ok["intended_s"] - origin_s) / BIN_S)
    ok = ok.assign(time_s=origin_s + (number + 0.5) * BIN_S)[number >= 0]
    keys = ["time_s", "arm", "repeat"]
    means: pd.DataFrame = ok.groupby(keys, observed=True)["e2e_s"].mean().reset_index()
    return means


def _mark_largest_ratio(run: Run, axes: Axes) -> None:
    """Draw the distance that the paper's "up to 8x" is about, where one treatment is compared."""
    paper_arm = run.treatments[0] if len(run.treatments) == 1 else run.paper_arm
    if paper_arm not in run.treatments:
        return
    pairs = pair_arms(run, paper_arm)
    if isinstance(pairs, str):
        return
    windows = pairs.windows
    base_s = divide(windows.baseline_sum.sum(axis=0), windows.baseline_ok.sum(axis=0))
    treated_s = divide(windows.treatment_sum.sum(axis=0), windows.treatment_ok.sum(axis=0))
    ratios = divide(base_s, treated_s)
    if np.isnan(ratios).all():
        return
    at = int(np.nanargmax(ratios))
    at_s, high_s, low_s = windows.starts_s[at] + windows.length_s / 2, base_s[at], treated_s[at]
    if high_s / low_s < 1.05:
        return
    axes.annotate(
        "",
        (at_s, low_s),
        xytext=(at_s, high_s),
        arrowprops={
            "arrowstyle": "<->",
            "linewidth": 0.7,
            "color": "0.2",
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )
    axes.annotate(
        f"{high_s / low_s:.1f}×",
        (at_s, float(np.sqrt(high_s * low_s))),
        xytext=(-3, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.8},
    )
