"""Panels of the timeline: one quantity over time, per arm, mean and range over repeats."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.frames import Run

BIN_S = 5.0
"""Seconds that one point of a line averages."""


def stacked_panels(
    run: Run, panels: dict[str, tuple[str, str]], height_in: float
) -> tuple[Figure, list[Axes]]:
    """Draw timeline columns under each other; `panels` maps a column to axis label and reason.

    The reason is what an empty panel says when the column was never recorded.
    """
    figure, grid = plt.subplots(
        len(panels), 1, sharex=True, squeeze=False, figsize=(style.WIDTH_IN, height_in)
    )
    axes = [row[0] for row in grid]
    named = None
    for panel, (column, (label, reason)) in zip(axes, panels.items(), strict=True):
        if draw_column(run, panel, column, label, reason) and named is None:
            named = panel
            style.shade_congestion(run, panel, label=True)
        else:
            style.shade_congestion(run, panel)
    style.time_axis(run, axes[-1])
    if named is not None:
        style.legend(run, figure, named)
    figure.align_ylabels(axes)
    return figure, axes


def draw_column(run: Run, axes: Axes, column: str, label: str, reason: str) -> bool:
    """Draw one column over time; returns False for an `n/a` panel."""
    rows = binned(run, column)
    if rows.empty:
        style.not_measured(axes, label.replace("\n", " "), reason)
        return False
    draw_lines(run, axes, rows, column)
    axes.set_ylabel(label)
    return True


def draw_lines(run: Run, axes: Axes, rows: pd.DataFrame, column: str) -> None:
    """Draw a line per arm: mean over repeats at each `time_s`, and a band over their range."""
    colours = style.palette(run)
    for arm, values in rows.groupby("arm", observed=True):
        by_time = values.groupby("time_s")[column].agg(["mean", "min", "max"])
        times = by_time.index.to_numpy(dtype=np.float64)
        colour = colours[str(arm)]
        dashes = style.line_style(run, str(arm))
        axes.fill_between(times, by_time["min"], by_time["max"], color=colour, alpha=0.2, lw=0)
        axes.plot(times, by_time["mean"], color=colour, linestyle=dashes, label=str(arm))


def binned(run: Run, column: str) -> pd.DataFrame:
    """Return the column's mean in bins of 5 s, per arm and repeat; empty when never recorded."""
    if run.timeline.empty or run.timeline[column].isna().all():
        return pd.DataFrame()
    rows = run.timeline[["repeat", "arm", "time_s", column]].dropna()
    rows = rows.assign(time_s=(np.floor(rows["time_s"] / BIN_S) + 0.5) * BIN_S)
    keys = ["repeat", "arm", "time_s"]
    return rows.groupby(keys, observed=True)[column].mean().reset_index()
