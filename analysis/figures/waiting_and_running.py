"""The engine's load: waiting and running requests over time."""

from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.over_time import stacked_panels
from analysis.frames import Run

POSITION = 4


def draw(run: Run) -> Figure:
    """Draw requests waiting for the batch and requests in it."""
    panels = {
        "waiting": ("waiting\n(requests)", "the engine reports no queue"),
        "running": ("running\n(requests)", "the engine reports no batch"),
    }
    figure, axes = stacked_panels(run, panels, 2.7)
    for panel in axes:
        panel.set_ylim(bottom=-0.03 * panel.get_ylim()[1])  # a line at 0 stays visible
    text = "Requests accepted but not yet in the batch, and requests in the batch. Means of 5 s; "
    style.caption(run, figure, text + "band: smallest to largest repeat.")
    return figure
