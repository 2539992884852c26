"""Capacity, step c: was the offered load sent, and does the client hide a wait of its own?"""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from analysis.capacity.study import Study
from analysis.figures import style


def draw(study: Study) -> Figure:
    """Draw achieved rate and throughput (above), e2e and service latency (below)."""
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(style.WIDTH_IN, 3.8))
    colours = style.palette(study.run)
    for arm in study.run.arms:
        points = study.open_of(arm)
        offered = [point.offered_rps for point in points]
        look = {"color": colours[arm], "markersize": 3}
        line = {
            "linestyle": style.line_style(study.run, arm),
            "marker": style.marker(study.run, arm),
        }
        achieved = [point.achieved_rps for point in points]
        above.plot(offered, achieved, marker="+", linestyle="", **look | {"markersize": 6})
        above.plot(offered, [point.throughput_rps for point in points], label=arm, **look, **line)
        below.plot(offered, [point.e2e_mean_s for point in points], **look, **line)
        service = [point.service_mean_s for point in points]
        below.plot(offered, service, marker="+", linestyle="", **look | {"markersize": 6})
    highest = max((point.offered_rps or 0.0 for point in study.open), default=1.0)
    above.plot([0, highest], [0, highest], color="0.75", linewidth=1.5, zorder=0)
    above.set(ylabel="achieved (+),\nthroughput (1/s)", ylim=(0, None))
    below.set(xlabel="offered rate (requests/s)", ylabel="mean e2e,\nservice (+) latency (s)")
    style.log_seconds(below, "y")
    for axes in (above, below):
        if study.capacity_rps is not None:
            axes.axvline(study.capacity_rps, color="0.85", linewidth=1.0, zorder=0)
        axes.grid(visible=True, alpha=0.5)
    style.legend(study.run, figure, above)
    style.caption(
        study.run,
        figure,
        "A + on the grey diagonal was sent as offered. A service latency (from the actual send) "
        "below the e2e latency (from the intended one) is a wait that the client hides. Above "
        "capacity (vertical line) latencies grow with the length of the test.",
    )
    return figure
