"""Validation: relative errors of ITL, tokens/s and watts against the batch limit, by profile."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.figures import style
from analysis.validation.errors import AS_IT_IS, METRICS, TARGETS


def draw(frame: pd.DataFrame) -> Figure:
    """Draw a panel a metric; filled markers are judged rows, open ones were fitted on."""
    rows = frame[(frame["split"] == AS_IT_IS) & (frame["prompt_factor"] == 1.0)]
    figure, panels = plt.subplots(
        len(TARGETS), 1, sharex=True, figsize=(style.WIDTH_IN, 7.4), squeeze=False
    )
    groups = list(rows.groupby(["profile", "task"]))
    colours = style.colours(len(groups))
    for axes, (metric, (median, largest)) in zip(panels[:, 0], TARGETS.items(), strict=True):
        axes.axhspan(-largest, largest, color="0.95", linewidth=0)
        axes.axhspan(-median, median, color="0.88", linewidth=0)
        axes.axhline(0, color="0.5", linewidth=0.6)
        for number, (group, points) in enumerate(groups):
            for role, fill in (("judged", "full"), ("fitted", "none")):
                some = points[points["role"] == role]
                axes.plot(
                    some["max_num_seqs"],
                    some[f"{metric}_error"],
                    color=colours[number],
                    marker=style.MARKERS[number],
                    fillstyle=fill,
                    markersize=4,
                    linestyle="none",
                    label=f"{group[0]}, {group[1]}" if role == "judged" else None,
                )
        axes.set_ylabel("error")
        axes.set_title(METRICS[metric], loc="left")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    bottom = panels[-1, 0]
    style.log_at(bottom, "x", rows["max_num_seqs"].tolist(), most=20)
    bottom.tick_params(axis="x", labelrotation=60)
    bottom.set_xlabel("batch limit (max_num_seqs)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=1)
    style.caption_lines(
        figure,
        "Simulated / measured - 1 of saturated servers. Filled: judged; open: fitted on. Light "
        "band: largest error allowed on judged rows; dark band: median.",
        source="simulated, beside measured",
    )
    return figure
