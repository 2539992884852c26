"""Capacity, step a: throughput and latency of the closed loop against its clients."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from analysis.capacity.study import Study
from analysis.figures import style


def draw(study: Study) -> Figure:
    """Draw throughput (above) and latency (below), with the knee of each arm."""
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(style.WIDTH_IN, 3.6))
    colours = style.palette(study.run)
    for arm in study.run.arms:
        points = study.closed_of(arm)
        clients = [point.clients for point in points]
        look = style.point_look(study.run, arm)
        above.plot(clients, [point.throughput_rps for point in points], **look)
        below.plot(clients, [point.latency_s for point in points], **look)
        knee = study.knee(arm)
        if knee is not None:
            above.axvline(knee.clients, color=colours[arm], linewidth=0.6, linestyle=":")
    above.set(ylabel="throughput (requests/s)", ylim=(0, None))
    below.set(xlabel="clients (all waiting for an answer)", ylabel="latency (s)")
    style.log_at(below, "x", [point.clients for point in study.closed])
    style.log_seconds(below, "y")
    for axes in (above, below):
        axes.grid(visible=True, alpha=0.5)
    style.legend(study.run, figure, above)
    style.caption(
        study.run,
        figure,
        "Closed loop. Dotted: fewest clients with 95 % of the highest throughput. These latencies "
        "are not what users wait: the number of clients fixes them.",
    )
    return figure
