"""Ranking: every arm by SLO attainment, with latency, energy and quality beside it."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.ranking.results import LOST_SHARE
from bellman.slo import Slo

Values = dict[str, Any]
PANELS = (
    ("slo_attainment", "SLO attainment (%)", 100.0),
    ("congested_e2e_mean_s", "e2e latency under\ncongestion, mean (s)", 1.0),
    ("energy_j_per_good_request", "energy a good\nrequest (J)", 1.0),
    ("rouge1_f1", "ROUGE-1 F1", 1.0),
)
"""Quantity, label, and what it is multiplied by."""


def draw(found: Values) -> Figure:
    """Draw a row an arm, the best on top; an open mark is an arm that loses requests."""
    arms = found["arms"]
    at = np.arange(len(arms))[::-1]
    figure, panels = plt.subplots(
        1, len(PANELS), sharey=True, figsize=(style.WIDE_IN, 0.9 + 0.16 * len(arms))
    )
    for panel, (name, label, factor) in zip(panels, PANELS, strict=True):
        for place, one in zip(at, arms, strict=True):
            _mark(panel, float(place), one, name, factor)
        panel.set_xlabel(label)
        panel.grid(visible=True, axis="both", alpha=0.5)
        if name in ("congested_e2e_mean_s", "energy_j_per_good_request"):
            style.log_seconds(panel, "x")
    panels[0].set_yticks(at, [one["arm"] for one in arms])
    panels[0].set_ylim(-0.6, len(arms) - 0.4)
    style.caption_lines(
        figure,
        f"{found['source'].capitalize()}, {found['repeats']} repeats; answers: "
        f"{found['response_source']}. SLO: {Slo(**found['slo']).in_words}; a lost "
        "request is not good. Bars: smallest to largest repeat, of ROUGE the 95 % interval. Open: "
        f"loses more than {LOST_SHARE:.0%} of its requests, and its latency is of the others.",
        [f"INVALID RUN: {reason}" for reason in found["invalid_reasons"][:1]],
        source=found["source"],
    )
    return figure


def _mark(panel: Axes, place: float, one: Values, name: str, factor: float) -> None:
    value, low, high = _with_range(one, name)
    if value is None:
        panel.text(
            0.5, place, "n/a", transform=panel.get_yaxis_transform(), fontsize=6, va="center"
        )
        return
    lossy = one["lost_share"] is None or one["lost_share"] > LOST_SHARE
    fill = "none" if lossy else "full"
    panel.plot(factor * value, place, color="0.15", marker="o", markersize=3.5, fillstyle=fill)
    if low is not None and high is not None:
        panel.hlines(place, factor * low, factor * high, color="0.15", linewidth=0.8)


def _with_range(one: Values, name: str) -> tuple[float | None, float | None, float | None]:
    if name == "rouge1_f1":
        score = one[name]
        return score["value"], score["low"], score["high"]
    repeats = [share for share in one["attainment_of_repeats"] if share is not None]
    if name == "slo_attainment" and repeats:
        return one[name], min(repeats), max(repeats)
    return one[name], None, None
