"""Uncertainty: the range of each claim over each coefficient of the profile, widest first."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from analysis.figures import style
from analysis.uncertainty.present import CLAIMS, as_fitted, ranges

SHOWN = 6
"""Coefficients a claim."""


def draw(study: dict[str, object]) -> Figure:
    """Draw a panel a claim."""
    figure, panels = plt.subplots(
        len(CLAIMS), 1, figsize=(style.WIDTH_IN, 1.35 * len(CLAIMS) + 0.4), squeeze=False
    )
    colour = style.COLOURS[0]
    for axes, (claim, title) in zip(panels[:, 0], CLAIMS.items(), strict=True):
        base = as_fitted(study, claim)
        if base is None:
            style.not_measured(axes, title, "no run has it")
            continue
        shown = [one for one in ranges(study, claim) if one.width > 0][:SHOWN][::-1]
        axes.barh(
            [one.coefficient for one in shown],
            [one.width for one in shown],
            left=[one.low for one in shown],
            color=colour,
            height=0.6,
        )
        axes.axvline(base, color="0.2", linewidth=0.8)
        text = f"{base:.1%}" if "share" in title else f"{base:.2f}"
        axes.set_title(f"{title.removesuffix(', share')}: {text} as fitted", loc="left")
        if "share" in title:
            axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.xaxis.set_major_locator(MaxNLocator(3))
        axes.use_sticky_edges = False
        axes.margins(x=0.08)
        axes.tick_params(axis="y", labelsize=6)
    style.caption_lines(
        figure,
        f"{str(study['source']).capitalize()}. Each claim when one coefficient of the performance "
        "profile is changed over its plausible range and everything is run again; the six that "
        "move it most.",
        source=str(study["source"]),
    )
    return figure
