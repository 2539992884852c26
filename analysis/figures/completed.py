"""Completed requests in each phase."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis import metrics
from analysis.figures import style
from analysis.figures.bars import draw_bars
from analysis.frames import Run
from bellman.load.schedule import Phase
from bellman.records import DRAIN

POSITION = 7


def draw(run: Run) -> Figure:
    """Draw the requests whose last token came in each phase, beside what was offered there."""
    figure, axes = plt.subplots(figsize=(style.WIDTH_IN, 2.2))
    rows = counts(run)
    if rows.empty:
        style.not_measured(axes, "completed requests", "no phase of the schedule is known")
    else:
        draw_bars(run, axes, rows, "phase", "completed")
        offered = rows.groupby("phase", sort=False)["offered"].mean()
        at = np.arange(len(offered))
        axes.hlines(offered, at - 0.45, at + 0.45, color="0.2", lw=1.0, ls=":", label="offered")
        axes.set(xlabel="phase in which the last token came", ylabel="requests per repeat")
        style.legend(run, figure, axes)
    text = "Requests that ended ok, by the phase of their last token; dotted: offered in the "
    style.caption(run, figure, text + "phase. Whiskers: smallest to largest repeat.")
    return figure


def counts(run: Run) -> pd.DataFrame:
    """Return offered and completed requests per phase, arm and repeat; the drain comes last."""
    phases = list(run.counted_phases)
    if phases:
        phases.append(Phase(DRAIN, phases[-1].end_s, float("inf"), 0.0))
    rows = []
    known = run.requests[["arm", "repeat", "phase", "ok", "last_token_s"]]
    for (arm, repeat), requests in known.groupby(["arm", "repeat"], observed=True):
        for phase in phases:
            inside = metrics.count_finished_inside(requests, phase.start_s, phase.end_s)
            offered = int((requests["phase"] == phase.name).sum())
            rows.append((phase.name, arm, repeat, offered, inside))
    return pd.DataFrame(rows, columns=["phase", "arm", "repeat", "offered", "completed"])
