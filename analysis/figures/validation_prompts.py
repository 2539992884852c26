"""Validation: how the errors on judged rows move with the prompt lengths that are assumed."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.figures import style
from analysis.validation.errors import AS_IT_IS, METRICS, TARGETS


def draw(frame: pd.DataFrame) -> Figure:
    """Draw median (line) and range (bar) of the errors by the factor on all prompts."""
    judged = frame[(frame["split"] == AS_IT_IS) & (frame["role"] == "judged")]
    profiles = sorted(judged["profile"].unique())
    colours = style.colours(len(profiles))
    figure, panels = plt.subplots(
        len(TARGETS), 1, sharex=True, figsize=(style.WIDTH_IN, 6.6), squeeze=False
    )
    for axes, metric in zip(panels[:, 0], TARGETS, strict=True):
        axes.axhline(0, color="0.5", linewidth=0.6)
        for number, profile in enumerate(profiles):
            errors = judged[judged["profile"] == profile].groupby("prompt_factor")[
                f"{metric}_error"
            ]
            median, low, high = errors.median(), errors.min(), errors.max()
            axes.errorbar(
                median.index + 0.012 * (number - 1),
                median,
                yerr=[median - low, high - median],
                color=colours[number],
                marker=style.MARKERS[number],
                markersize=3,
                linewidth=0.9,
                elinewidth=0.6,
                label=profile,
            )
        axes.set_ylabel("error")
        axes.set_title(METRICS[metric], loc="left")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    panels[-1, 0].set_xlabel("all prompts x")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    style.caption_lines(
        figure,
        "Simulated / measured - 1 on judged rows: median and range. The measured rows' prompt "
        "lengths are not published; at 1 their means are those of the fit.",
        source="simulated, beside measured",
    )
    return figure
