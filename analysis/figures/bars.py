"""Bars of every arm side by side: the mean over repeats, from the smallest to the largest."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import style
from analysis.frames import Run
from analysis.statistics import Array

GROUP = 0.8
"""Width of all bars of a group; groups are 1 apart."""


def draw_bars(run: Run, axes: Axes, rows: pd.DataFrame, across: str, column: str) -> None:
    """Draw a group for each value of `across`, in it a bar an arm; `rows` has one a repeat."""
    names = list(dict.fromkeys(rows[across]))
    for arm in run.arms:
        found = rows[rows["arm"] == arm].groupby(across, observed=True)[column]
        values = found.agg(["mean", "min", "max"]).reindex(names)
        at, width = place(run, arm, len(names))
        axes.bar(at, values["mean"], width, label=arm, **bar_look(run, arm))
        axes.vlines(at, values["min"], values["max"], color="0.15", linewidth=0.8)
    axes.set_xticks(np.arange(len(names)), names)


def place(run: Run, arm: str, groups: int, first: int = 0) -> tuple[Array, float]:
    """Return where an arm's bars stand and how wide they are; arms before `first` have none."""
    shown = len(run.arms) - first
    width = GROUP / shown
    middle = (run.arms.index(arm) - first - (shown - 1) / 2) * width
    return np.arange(groups, dtype=np.float64) + middle, width


def bar_look(run: Run, arm: str) -> dict[str, Any]:
    """Return what `bar` takes for an arm: colour, and a hatch that shows in grey."""
    return {
        "color": style.palette(run)[arm],
        "hatch": style.hatch(run, arm),
        "edgecolor": "white",
        "linewidth": 0.0,
    }
