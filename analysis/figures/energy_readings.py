"""The four readings of "25 % less energy during periods of congestion", side by side."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.claims import assess
from analysis.energy_claim import FORMULA, PER_REQUEST, WHOLE_EPISODE
from analysis.figures import style
from analysis.figures.bars import bar_look, place
from analysis.frames import Run
from analysis.own_period import OWN_PERIOD
from analysis.statistics import Estimate
from analysis.together import ENERGY
from analysis.verdict import Claim

POSITION = 6
BESIDE = 0.27
"""Of a bar's middle, where the formula's value leaves room for the bar's own."""
LABELS = {
    None: "congested\nwindow",
    PER_REQUEST: "per\nrequest",
    WHOLE_EPISODE: "whole\nepisode",
    OWN_PERIOD: "own\nperiod",
}
"""By the companion that is the reading; None is the claim itself."""


def draw(run: Run) -> Figure | None:
    """Draw a bar a reading and treatment with its interval; None without a treatment."""
    claims = [claim for claim in assess(run) if claim.name == ENERGY]
    if not claims:
        return None
    figure, axes = plt.subplots(figsize=(style.WIDTH_IN, 2.3))
    if all(claim.estimate.value is None for claim in claims):
        style.not_measured(axes, "energy", claims[0].reason)
    else:
        for claim in claims:
            _bars(run, axes, claim)
        axes.axhline(0, color="0.15", linewidth=0.6)
        paper = 100 * claims[0].paper_value
        axes.axhline(paper, color="0.35", linewidth=0.8, linestyle="--", label="paper")
        formula = _reading(claims[0], FORMULA).value
        if formula is not None:
            at = list(LABELS).index(OWN_PERIOD)
            axes.plot(
                at + BESIDE, 100 * formula, "D", color="0.15", fillstyle="none", label="formula"
            )
        axes.set_xticks(range(len(LABELS)), LABELS.values())
        axes.set_ylabel("energy less (%)")
        axes.margins(y=0.12)
        style.legend(run, figure, axes)
    text = f"Energy against {run.baseline} by four readings of the paper's sentence, with 95 % "
    text += "intervals. Dashed: its 25 %. Diamond: the own period's saving if nothing but its "
    style.caption(run, figure, text + "length changed, by the formula of docs/analysis.md.")
    return figure


def _bars(run: Run, axes: Axes, claim: Claim) -> None:
    found = [_reading(claim, name) for name in LABELS]
    percent = [np.nan if one.value is None else 100 * one.value for one in found]
    at, width = place(run, claim.treatment, len(found), first=1)
    axes.bar(at, percent, width, label=claim.treatment, **bar_look(run, claim.treatment))
    for x, value, one in zip(at, percent, found, strict=True):
        if one.value is None:
            axes.text(x, 0, "n/a", ha="center", va="bottom", fontsize=style.MARK_PT)
            continue
        top = value
        if one.low is not None and one.high is not None:
            axes.vlines(x, 100 * one.low, 100 * one.high, color="0.15", linewidth=0.8)
            top = 100 * one.high
        if len(run.treatments) == 1:
            axes.annotate(
                f"{round(value, 1) + 0.0:.1f}",
                (x, max(top, 0.0)),
                xytext=(0, 1),
                textcoords="offset points",
                ha="center",
                va="bottom",
                bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.4},
            )


def _reading(claim: Claim, name: str | None) -> Estimate:
    if name is None:
        return claim.estimate
    found = (one.estimate for one in claim.companions if one.name == name)
    return next(found, Estimate(None))
