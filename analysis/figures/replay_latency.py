"""Replay: latency in the congested phase, measured and simulated, by arm."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from analysis import metrics
from analysis.figures import style
from analysis.frames import Run
from bellman.load.schedule import CONGESTED


def draw(measured: Run, simulated: Run) -> Figure:
    """Draw the CDF of e2e latency of both engines in every arm; lost requests never arrive."""
    figure, axes = plt.subplots(figsize=(style.WIDTH_IN, 2.6))
    colours = style.palette(measured)
    for arm in measured.arms:
        for run, line in ((measured, "-"), (simulated, "--")):
            requests = run.requests[
                (run.requests["phase"] == CONGESTED) & (run.requests["arm"] == arm)
            ]
            e2e_s = np.sort(metrics.failures_as_infinity(requests, "e2e_s"))
            if not np.isfinite(e2e_s).any():
                continue
            axes.step(
                e2e_s,
                np.arange(1, len(e2e_s) + 1) / len(e2e_s),
                where="post",
                color=colours[arm],
                linestyle=line,
                label=f"{arm}, {run.source}",
            )
    style.log_seconds(axes, "x")
    axes.set(xlabel="e2e latency (s)", ylabel="share of requests", ylim=(0, 1.02))
    axes.grid(visible=True, alpha=0.5)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    repeats = measured.requests["repeat"].nunique()
    text = (
        f"{measured.response_source}, measured and simulated, {repeats} repeats pooled: all "
        "requests intended in the congested phase. The step time was fitted to batches on the "
        "idle engine; these episodes were not used."
    )
    style.caption_lines(figure, text, source="measured and simulated")
    return figure
