"""The control loop: load, level and budget over time, and level and budget against the load."""

from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.over_time import binned, draw_column
from analysis.frames import Run

POSITION = 3
OUTSTANDING = "outstanding"
PANELS = {
    OUTSTANDING: ("outstanding\n(requests)", "the engine reports no load"),
    "level": ("level", "no signal was recorded"),
    "word_budget": ("budget\n(words)", "no budget was recorded"),
}


def draw(run: Run) -> Figure:
    """Draw the loop over time (left), and what it answers to the load (right)."""
    run = replace(run, timeline=with_outstanding(run.timeline))
    figure = plt.figure(figsize=(style.WIDE_IN, 3.4))
    grid = figure.add_gridspec(6, 2, width_ratios=(1.9, 1))
    left = [figure.add_subplot(grid[row : row + 2, 0]) for row in (0, 2, 4)]
    right = [figure.add_subplot(grid[row : row + 3, 1]) for row in (0, 3)]
    named = None
    for panel, (column, (label, reason)) in zip(left, PANELS.items(), strict=True):
        drawn = draw_column(run, panel, column, label, reason)
        style.shade_congestion(run, panel, label=drawn and named is None)
        if drawn:
            named = named or panel
            style.time_axis(run, panel)
            panel.label_outer()
            panel.set_ylim(bottom=-0.05 if column == "level" else 0)
    for panel, column in zip(right, ("level", "word_budget"), strict=True):
        _against_load(run, panel, column)
    right[0].sharex(right[1])
    right[0].tick_params(labelbottom=False)
    right[0].set_xlabel("")
    if named is not None:
        style.legend(run, figure, named)
    figure.align_ylabels(left)
    figure.align_ylabels(right)
    text = "Left: requests in the engine, running and waiting, the level as published, and the "
    text += "words that the application would ask for: means of 5 s; band: smallest to largest "
    text += "repeat. Right: level and budget against the requests, mean over repeats every 5 s in "
    text += "the order of time, of arms whose answer moves; a loop is the delay between load and "
    text += "answer."
    style.caption(run, figure, text)
    return figure


def with_outstanding(timeline: pd.DataFrame) -> pd.DataFrame:
    """Return the timeline with the requests outstanding, running and waiting."""
    if timeline.empty:
        return timeline
    return timeline.assign(**{OUTSTANDING: timeline["running"] + timeline["waiting"]})


def _against_load(run: Run, axes: Axes, column: str) -> None:
    label, reason = PANELS[column]
    load, answer = binned(run, OUTSTANDING), binned(run, column)
    if load.empty or answer.empty:
        style.not_measured(axes, label.replace("\n", " "), reason)
        return
    both = load.merge(answer, on=["repeat", "arm", "time_s"])
    means = both.groupby(["arm", "time_s"], observed=True)[[OUTSTANDING, column]].mean()
    colours = style.palette(run)
    for arm, path in means.groupby("arm", observed=True):
        if path[column].nunique() < 2:
            continue  # no signal: nothing is answered
        axes.plot(
            path[OUTSTANDING],
            path[column],
            color=colours[str(arm)],
            linestyle=style.line_style(run, str(arm)),
            linewidth=0.8,
        )
    axes.set(xlabel="outstanding (requests)", ylabel=label)
    axes.set_ylim(bottom=-0.05 if column == "level" else 0)
    axes.grid(visible=True, alpha=0.5)
