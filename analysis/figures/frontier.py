"""Frontier: quality against latency and against energy, and the arms that no other one beats."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.names import write_names
from analysis.ranking.best import MEASURES
from analysis.ranking.front import comparable, front

Values = dict[str, Any]
WIDE_IN = 7.0
COSTS = (
    ("congested_e2e_mean_s", "e2e latency under congestion, mean (s)"),
    ("energy_j_per_good_request", "energy a good request (J)"),
)


def draw(found: Values) -> Figure:
    """Draw a panel a cost: the fixed lengths joined by a line, the front as steps."""
    figure, panels = plt.subplots(
        len(MEASURES), len(COSTS), sharey="row", sharex="col", figsize=(WIDE_IN, 4.6)
    )
    marks = []
    for panel_row, (quality, name) in zip(panels, MEASURES.items(), strict=True):
        for panel, (cost, _) in zip(panel_row, COSTS, strict=True):
            marks.append((panel, _panel(panel, found["arms"], quality, cost)))
            panel.grid(visible=True, alpha=0.5)
        panel_row[0].set_ylabel(name)
    for panel, (_, label) in zip(panels[-1], COSTS, strict=True):
        panel.set_xlabel(label)
    style.caption_lines(
        figure,
        f"{found['source'].capitalize()}, {found['repeats']} repeats; answers: "
        f"{found['response_source']}. Dotted: arms that always ask for one length. Filled, and the "
        "line: no other arm is as good in both. Arms that lose more than 1 % of their requests "
        "are left out, and names that find no room.",
        [f"INVALID RUN: {reason}" for reason in found["invalid_reasons"][:1]],
        source=found["source"],
    )
    figure.draw_without_rendering()
    for panel, named in marks:
        write_names(panel, named)
    return figure


def _panel(
    panel: Axes, arms: list[Values], quality: str, cost: str
) -> list[tuple[str, float, float]]:
    """Draw marks and lines; return names and places of the marks, those of the front first."""
    shown = [one for one in arms if comparable(one, quality, cost)]
    if not shown:
        style.not_measured(panel, "front", "no arm has both quantities")
        return []
    best = front(arms, quality, cost)
    names = {one["arm"] for one in best}
    fixed = sorted((one for one in shown if one["arm"].startswith("static_")), key=_words)
    panel.plot(*_line(fixed, quality, cost), color="0.5", linestyle=":", linewidth=0.8)
    panel.plot(*_line(best, quality, cost), color="0.3", drawstyle="steps-post", linewidth=0.9)
    for one in shown:
        x, y = float(one[cost]), float(one[quality]["value"])
        fill = "full" if one["arm"] in names else "none"
        panel.plot(x, y, color="0.15", marker="o", markersize=3.5, fillstyle=fill)
    style.log_seconds(panel, "x")
    return [
        (one["arm"], float(one[cost]), float(one[quality]["value"]))
        for one in [*best, *(one for one in shown if one["arm"] not in names)]
    ]


def _words(one: Values) -> float:
    return float(one["words"])


def _line(arms: list[Values], quality: str, cost: str) -> tuple[list[float], list[float]]:
    return [float(one[cost]) for one in arms], [float(one[quality]["value"]) for one in arms]
