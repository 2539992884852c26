"""Kernels: relative error of the fitted step time against the step time, by kind of step."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from analysis.figures import style


def draw(steps: pd.DataFrame, errors: NDArray[np.float64], title: str) -> Figure:
    """Draw the errors of step rows, in the form that `scripts/fit_profile.py` takes."""
    figure, axes = plt.subplots(figsize=(style.WIDTH_IN, 2.2))
    colours = style.COLOURS
    axes.axhline(0, color="0.5", linewidth=0.6)
    for number, kind in enumerate(sorted(steps["kind"].unique())):
        some = (steps["kind"] == kind).to_numpy()
        axes.plot(
            steps.loc[some, "latency_ms"],
            errors[some],
            color=colours[number],
            marker=style.MARKERS[number],
            markersize=3,
            linestyle="none",
            label=f"{kind} ({some.sum()})",
        )
    style.log_seconds(axes, "x")
    axes.set(xlabel="step time (ms)", ylabel="fitted / given - 1")
    axes.set_title(title, loc="left")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=3, columnspacing=1.0, handletextpad=0.1
    )
    style.caption_lines(
        figure,
        "Kernel times composed from measured kernels, not measured steps of a server.",
        source="composed from measured kernels",
    )
    return figure
