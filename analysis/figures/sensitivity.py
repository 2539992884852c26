"""Sensitivity: quantities of every arm over the axes of small grids, a figure for each grid."""

import textwrap
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.grid.points import text
from analysis.plain import last_part
from analysis.sensitivity.present import arms_at
from analysis.sensitivity.quantities import QUANTITIES, Quantity

Values = dict[str, Any]
TITLES = 120
"""Characters of all panels' titles side by side."""


def draw(found: Values) -> Iterator[tuple[str, Figure]]:
    """Yield name and figure of each grid."""
    for number, (name, axes) in enumerate(found["grids"].items(), 1):
        yield f"sensitivity_{number}", grid_figure(found, name, axes)


def grid_figure(found: Values, name: str, axes: dict[str, list[Any]]) -> Figure:
    """Draw a column a quantity, and a row for each value of a second axis."""
    common = {key: values[0] for key, values in axes.items() if len(values) == 1}
    across, *second = sorted(
        (key for key, values in axes.items() if len(values) > 1), key=lambda key: -len(axes[key])
    )
    rows = [{second[0]: value} for value in axes[second[0]]] if second else [{}]
    names = found["quantities"]
    figure, panels = plt.subplots(
        len(rows),
        len(names),
        squeeze=False,
        sharex=True,
        sharey="col",
        figsize=(style.WIDE_IN, 1.1 + 1.15 * len(rows)),
    )
    for panel_row, row in zip(panels, rows, strict=True):
        at = [arms_at(found, common | row | {across: value}) for value in axes[across]]
        for panel, quantity in zip(panel_row, names, strict=True):
            _lines(panel, at, quantity, QUANTITIES[quantity])
            ticks = [
                style.plain_number(value) if isinstance(value, float) else text(value)
                for value in axes[across]
            ]
            panel.set_xticks(range(len(at)), ticks, fontsize=6)
        for key, value in row.items():
            panel_row[0].set_ylabel(f"{last_part(key)} {text(value)}")
    for panel, quantity in zip(panels[0], names, strict=True):
        panel.set_title(
            textwrap.fill(QUANTITIES[quantity].label, TITLES // len(names)), fontsize=6.5
        )
    # Of a grid of one axis the name says what it is.
    figure.supxlabel(last_part(across) if second else name)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    repeats = min((point["repeats"] for point in found["points"]), default=0)
    source = str(found["source"])
    caption = f"{source.capitalize()}, {repeats} repeats. {name}."
    style.caption_lines(figure, caption, source=source)
    return figure


def _lines(panel: Axes, at: list[list[Values]], name: str, quantity: Quantity) -> None:
    arms = list(dict.fromkeys(arm["arm"] for arms in at for arm in arms))
    colours = style.colours(len(arms))
    for number, arm in enumerate(arms):
        values = [
            next((one[name] for one in arms_there if one["arm"] == arm), None) for arms_there in at
        ]
        panel.plot(
            range(len(at)),
            [np.nan if value is None else quantity.factor * float(value) for value in values],
            color=colours[number],
            marker=style.MARKERS[number % len(style.MARKERS)],
            linestyle=style.LINE_STYLES[number % len(style.LINE_STYLES)],
            markersize=3,
            label=arm,
        )
    if quantity.logarithmic:
        style.log_seconds(panel, "y")
    panel.grid(visible=True, alpha=0.5)
