"""ROUGE against the length of the answer."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.frames import Run

POSITION = 8
METRIC = "rouge1"
PARTS = (("f1", "F1", "-"), ("recall", "recall", "--"), ("precision", "precision", ":"))
BIN_FACTOR = 1.25
"""Longest over shortest answer of one bin of lengths."""


def draw(run: Run) -> Figure | None:
    """Draw ROUGE-1 of all texts by length, and where each arm stands; None for another score."""
    texts = run.quality
    if texts is not None and f"{METRIC}_f1" not in texts:
        return None
    figure, (scores, relative) = plt.subplots(
        2, 1, sharex=True, height_ratios=(2, 1), figsize=(style.WIDTH_IN, 3.1)
    )
    if texts is None:
        style.not_measured(scores, "ROUGE", "the answers were not scored")
        style.not_measured(relative, "ROUGE / random sentences", "the answers were not scored")
        style.caption(run, figure, "ROUGE not measured.")
        return figure
    bins = by_length(texts)
    for part, label, dashes in PARTS:
        scores.plot(bins["words"], bins[f"{METRIC}_{part}"], ls=dashes, color="0.3", label=label)
    _mark_arms(run, scores)
    scores.set_ylabel("ROUGE-1")
    scores.set_ylim(bottom=0)
    ratio = f"{METRIC}_f1_ratio"
    if ratio not in bins:
        style.not_measured(relative, "F1 / random sentences", "no baseline was scored")
    else:
        relative.plot(bins["words"], bins[ratio], color="0.3")
        relative.axhline(1.0, color="0.6", linewidth=0.6)
        relative.set_ylabel("F1 / random")
    relative.set_xlabel("words in the answer")
    style.legend(run, figure, scores)
    figure.align_ylabels([scores, relative])
    text = f"Answers: {run.response_source}. Means over {len(texts)} distinct texts by length; "
    text += "markers: mean F1 and words of each arm. Below: F1 over that of random sentences of "
    style.caption(run, figure, text + "the same document, cut to the same length.")
    return figure


def by_length(texts: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of every score in geometric bins of words; bins of one text are left out."""
    known = texts[texts["words"] > 0]
    number = np.floor(np.log(known["words"]) / np.log(BIN_FACTOR))
    names = ["words", *(name for name in texts.columns if name.startswith("rouge"))]
    grouped = known.groupby(number)[names]
    means = grouped.mean()
    return means[grouped.size() > 1].reset_index(drop=True)


def _mark_arms(run: Run, axes: Axes) -> None:
    assert run.quality is not None
    colours = style.palette(run)
    counted = [phase.name for phase in run.counted_phases]
    rows = run.requests[run.requests["ok"] & run.requests["phase"].isin(counted)]
    scored = rows[["arm", "text_id"]].merge(run.quality, on="text_id")
    means = scored.groupby("arm", observed=True)[["words", f"{METRIC}_f1"]].mean()
    for arm, words, f1 in means.itertuples():
        axes.plot(
            words,
            f1,
            marker=style.marker(run, arm),
            color=colours[arm],
            markersize=6,
            markeredgecolor="white",
            linestyle="",
            label=arm,
        )
