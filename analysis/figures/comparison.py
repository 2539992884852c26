"""Every arm against the baseline: one row an arm, a panel for each claim."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.claims import assess
from analysis.figures import style
from analysis.frames import Run
from analysis.verdict import Claim

POSITION = 0
ALL_ARMS = True
PANELS = (
    ("end-to-end latency", "e2e latency\n(times lower)", 1.0, 1.0),
    ("energy", "energy\n(% less)", 100.0, 0.0),
    ("requests served", "requests\n(% more)", 100.0, 0.0),
)
"""Claim, label, what the estimate is multiplied by, and the value that means no effect."""


def draw(run: Run) -> Figure | None:
    """Draw estimate and interval of each claim for every treatment; None for fewer than two."""
    if len(run.treatments) < 2:
        return None
    claims = {(claim.name, claim.treatment): claim for claim in assess(run)}
    at = np.arange(len(run.treatments))[::-1]
    figure, panels = plt.subplots(
        1, len(PANELS), sharey=True, figsize=(style.WIDTH_IN, 0.9 + 0.16 * len(at))
    )
    for panel, (name, label, factor, no_effect) in zip(panels, PANELS, strict=True):
        found = [claims[name, arm] for arm in run.treatments]
        for place, claim in zip(at, found, strict=True):
            _point(panel, place, claim, factor)
        panel.axvline(no_effect, color="0.6", linewidth=0.6)
        panel.axvline(found[0].paper_value * factor, color="0.4", linewidth=0.8, linestyle="--")
        panel.set_xlabel(label)
        panel.grid(visible=True, axis="x", alpha=0.5)
    panels[0].set_yticks(at, run.treatments)
    panels[0].set_ylim(-0.6, len(at) - 0.4)
    style.caption(
        run,
        figure,
        f"Every arm against {run.baseline}: the definitions of the claims, with 95 % intervals. "
        "Dashed: the paper's figure; grey: no effect.",
    )
    return figure


def _point(panel: Axes, place: float, claim: Claim, factor: float) -> None:
    value, low, high = claim.estimate.value, claim.estimate.low, claim.estimate.high
    if value is None or not np.isfinite(value):
        panel.text(
            0.5, place, "n/a", transform=panel.get_yaxis_transform(), fontsize=6, va="center"
        )
        return
    panel.plot(factor * value, place, color="0.1", marker="o", markersize=3)
    if low is not None and high is not None:
        panel.hlines(place, factor * low, factor * high, color="0.1", linewidth=0.8)
