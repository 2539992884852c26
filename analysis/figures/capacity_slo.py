"""Capacity, step b: SLO attainment and goodput against the offered rate, and the highest rate."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from analysis.capacity.study import Study
from analysis.figures import style


def draw(study: Study) -> Figure:
    """Draw the SLO attainment (above) and the goodput (below) of the open loop."""
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(style.WIDTH_IN, 3.6))
    colours = style.palette(study.run)
    unjudged = any(point.judged.unjudged for point in study.open)
    for arm in study.run.arms:
        points = study.open_of(arm)
        rates = [point.rate_rps for point in points]
        look = style.point_look(study.run, arm)
        above.plot(rates, [point.slo_attainment for point in points], **look)
        below.plot(rates, [point.goodput_rps for point in points], **look)
        for point in points:
            if point.slo_attainment is None and point.judged.bounds is not None:
                above.vlines(point.rate_rps, *point.judged.bounds, color=colours[arm], alpha=0.5)
        best = study.highest_slo_rate(arm)
        if best is not None:
            for axes in (above, below):
                axes.axvline(best, color=colours[arm], linewidth=0.6, linestyle=":")
    above.axhline(study.slo_attainment, color="0.5", linewidth=0.6)
    above.set(ylabel="SLO attainment", ylim=(-0.02, 1.04))
    below.set(xlabel="offered rate (requests/s)", ylabel="goodput (requests/s)", ylim=(0, None))
    for axes in (above, below):
        if study.capacity_rps is not None:
            axes.axvline(study.capacity_rps, color="0.75", linewidth=1.5, zorder=0)
        axes.grid(visible=True, alpha=0.5)
    style.legend(study.run, figure, above)
    style.caption(
        study.run,
        figure,
        f"Poisson arrivals for {study.open_length_s:g} s a point. Good: {study.slo.in_words}. "
        f"Dotted: highest rate that keeps {study.slo_attainment:.0%} good; grey: capacity without "
        "control."
        + (" Vertical lines: between, for not all requests could be judged." if unjudged else ""),
    )
    return figure
