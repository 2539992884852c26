"""Distribution of end-to-end latency in the congested phase."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from analysis import metrics
from analysis.figures import style
from analysis.frames import Run
from bellman.load.schedule import CONGESTED

POSITION = 2
POINTS = 500
"""Steps drawn of each distribution: finer than a column's width in print."""


def draw(run: Run) -> Figure:
    """Draw the CDF over all requests intended in the phase; lost ones never arrive."""
    figure, axes = plt.subplots(figsize=(style.WIDTH_IN, 2.1))
    requests = run.requests[run.requests["phase"] == CONGESTED]
    colours = style.palette(run)
    drawn = False
    for arm in run.arms:
        e2e_s = np.sort(metrics.failures_as_infinity(requests[requests["arm"] == arm], "e2e_s"))
        finite = int(np.isfinite(e2e_s).sum())
        if finite == 0:
            continue
        ranks = np.unique(np.linspace(1, finite, min(POINTS, finite)).astype(np.int64))
        axes.step(
            e2e_s[ranks - 1],
            ranks / len(e2e_s),
            where="post",
            color=colours[arm],
            linestyle=style.line_style(run, arm),
            label=arm,
        )
        drawn = True
    if drawn:
        style.log_seconds(axes, "x")
        axes.set(xlabel="e2e latency (s)", ylabel="share of requests", ylim=(0, 1.02))
        axes.grid(visible=True, alpha=0.5)
        style.legend(run, figure, axes)
    else:
        style.not_measured(axes, "e2e latency", "no request of the congested phase ended ok")
    phase = run.phase(CONGESTED)
    text = "All requests intended in the congested phase, repeats pooled; lost requests keep a "
    text += "curve below 1."
    if phase is not None and run.above_capacity(phase):
        text += f" Above capacity for {phase.length_s:g} s: latencies grow with the length of "
        text += "the test."
    style.caption(run, figure, text)
    return figure
