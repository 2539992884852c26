"""Capacity, step b: the highest good rate against how long users may wait."""

import math

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from analysis.capacity.study import Study
from analysis.figures import style


def draw(study: Study) -> Figure:
    """Draw the highest rate of every arm over the scale of the SLO (as DistServe, OSDI 2024)."""
    figure, axes = plt.subplots(figsize=(style.WIDTH_IN, 2.2))
    scales = sorted(study.open_by_scale)
    for arm in study.run.arms:
        found = [study.highest_slo_rate(arm, scale) for scale in scales]
        rates = [math.nan if rate is None else rate for rate in found]
        look = style.point_look(study.run, arm)
        axes.plot(scales, rates, **look)
        bounds = [
            rate if study.no_limit_found(arm, scale) else math.nan
            for rate, scale in zip(rates, scales, strict=True)
        ]
        axes.plot(scales, bounds, linestyle="", marker="^", markersize=8, color=look["color"])
    if study.capacity_rps is not None:
        axes.axhline(study.capacity_rps, color="0.75", linewidth=1.5, zorder=0)
    axes.set(
        xlabel="limits of the SLO / configured limits",
        ylabel="highest good rate\n(requests/s)",
        ylim=(0, None),
        xticks=scales,
    )
    axes.margins(y=0.12)
    axes.grid(visible=True, alpha=0.5)
    style.legend(study.run, figure, axes)
    style.caption(
        study.run,
        figure,
        f"Highest rate tried that keeps {study.slo_attainment:.0%} good, {study.open_length_s:g} s "
        f"a point; limits at 1: {study.slo.in_words}. Triangle: only a bound, every rate tried was "
        "good. Grey: capacity without control.",
    )
    return figure
