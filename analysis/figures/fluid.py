"""Fluid: the requests in the engine over time, simulated and by the fluid model; the level."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from analysis.figures import style
from bellman.load.schedule import CONGESTED

WIDE_IN = 7.0


def draw(found: dict[str, Any]) -> Figure:
    """Draw a column an arm: queue above, level below."""
    arms = found["arms"]
    figure, panels = plt.subplots(
        2, len(arms), squeeze=False, sharex=True, sharey="row", figsize=(WIDE_IN, 3.2)
    )
    for (queue, level), arm in zip(panels.T, arms, strict=True):
        times_s = arm["time_s"]
        queue.fill_between(times_s, arm["lowest"], arm["highest"], color="0.8", linewidth=0)
        queue.plot(times_s, arm["simulated"], color="0.15", label="simulated")
        queue.plot(times_s, arm["fluid"], color="#d55e00", linestyle="--", label="fluid")
        level.plot(times_s, arm["level"], color="0.15")
        level.plot(times_s, arm["fluid_level"], color="#d55e00", linestyle="--")
        error = arm["errors"].get(CONGESTED, {}).get("error")
        shown = "n/a" if error is None else f"{100 * error:.1f} %"
        queue.set_title(f"{arm['arm']}\nerror under congestion {shown}", fontsize=7)
        level.set(xlabel="time in the episode (s)", ylim=(-0.03, 1.03))
        for phase in found["phases"]:
            if phase["name"] == CONGESTED:
                for panel in (queue, level):
                    panel.axvspan(
                        phase["start_s"], phase["end_s"], color="0.93", linewidth=0, zorder=0
                    )
    panels[0, 0].set_ylabel("requests in the engine")
    panels[1, 0].set_ylabel("level")
    panels[0, 0].legend(loc="upper left", fontsize=6)
    style.caption_lines(
        figure,
        f"{str(found['source']).capitalize()}, {found['repeats']} repeats: mean, smallest and "
        "largest; dashed: dQ/dt = lambda L - C, which knows the mean rate and mean lengths alone. "
        "Error: mean absolute, by the simulated mean.",
        source=str(found["source"]),
    )
    return figure
