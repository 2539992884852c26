"""The signal and what the application makes of it: level and word budget over time."""

from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.over_time import stacked_panels
from analysis.frames import Run

POSITION = 3


def draw(run: Run) -> Figure:
    """Draw the published level and the word budget."""
    panels = {
        "level": ("level", "no signal was recorded"),
        "word_budget": ("budget\n(words)", "no budget was recorded"),
    }
    figure, (level, budget) = stacked_panels(run, panels, 3.0)
    level.set_ylim(-0.05, 1.05)
    budget.set_ylim(bottom=0)
    text = "Congestion level in [0, 1] as published, and the words the application would ask for. "
    style.caption(run, figure, text + "Means of 5 s; band: smallest to largest repeat.")
    return figure
