"""Grid: each claim over the axes, as a heat map of the two longest, or as a line over one."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.figures import style
from analysis.grid.results import flat
from analysis.plain import last_part

CLAIMS = {
    "end-to-end latency": ("e2e latency, times lower", 8.0, 1.0),
    "energy": ("energy less (%)", 25.0, 100.0),
    "energy: per request": ("energy a request less (%)", 25.0, 100.0),
    "requests served": ("requests served more (%)", 19.0, 100.0),
}
"""Title, the paper's figure, and what the estimate is multiplied by, in the order of the panels."""
ROWS_OF_PANELS = 6
"""Combinations of the other axes that are drawn; all are in grid.csv."""


def draw(found: dict[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Yield name and figure, one for each treatment."""
    frame = pd.DataFrame(list(flat(found)))
    if frame.empty:
        return
    for treatment, of_arm in frame.groupby("treatment", sort=False):
        kept = [name for name in found["axes"] if of_arm[name].map(_text).nunique() > 1]
        rows = of_arm.assign(**{name: of_arm[name].map(_text) for name in kept})
        order = sorted(kept, key=lambda name: -rows[name].nunique())
        figure = _map(rows, order) if len(order) >= 2 else _line(rows, (order or found["axes"])[0])
        style.caption_lines(
            figure,
            f"{treatment} against the baseline, {found['source']}, {int(rows['repeats'].min())} "
            "repeats or more a point. Framed, or above the dashed line: the paper's figure.",
            source=found["source"],
        )
        yield f"grid_{_file_name(str(treatment))}", figure


def _map(rows: pd.DataFrame, axes: list[str]) -> Figure:
    """Draw a heat map a claim, and a row of them for each combination of the other axes."""
    across, down, *others = axes
    combined = list(itertools.product(*(list(dict.fromkeys(rows[name])) for name in others)))
    shown = combined[:ROWS_OF_PANELS]
    height = 0.7 + len(shown) * (0.75 + 0.22 * rows[down].nunique())
    figure, panels = plt.subplots(
        len(shown),
        len(CLAIMS),
        squeeze=False,
        sharex=True,
        sharey=True,
        figsize=(style.WIDE_IN, height),
    )
    for number, (panel_row, values) in enumerate(zip(panels, shown, strict=True)):
        some = rows
        for name, value in zip(others, values, strict=True):
            some = some[some[name] == value]
        for axes_, (claim, (title, paper, factor)) in zip(panel_row, CLAIMS.items(), strict=True):
            _heat(axes_, some, across, down, claim, factor=factor, paper=paper)
            if number == 0:
                axes_.set_title(title, fontsize=7)
        place = [f"{last_part(name)}\n{value}" for name, value in zip(others, values, strict=True)]
        panel_row[0].set_ylabel("\n".join(place), fontsize=style.MARK_PT)
    for axes_ in panels[-1]:
        axes_.set_xlabel(last_part(across))
    figure.supylabel(last_part(down))
    return figure


def _heat(
    axes: Axes,
    rows: pd.DataFrame,
    across: str,
    down: str,
    claim: str,
    *,
    factor: float,
    paper: float,
) -> None:
    numbers = pd.to_numeric(rows[claim], errors="coerce") * factor if claim in rows else np.nan
    table = rows.assign(value=numbers).pivot_table(
        index=down, columns=across, values="value", sort=False, dropna=False
    )
    none = 1.0 if factor == 1.0 else 0.0
    # Grey at no effect, full colour at the paper's figure; readable without colours by its text.
    import seaborn as sns  # noqa: PLC0415 - a second to import, for maps only

    sns.heatmap(
        table,
        ax=axes,
        vmin=2 * none - paper,
        vmax=paper,
        cmap="PuOr",
        cbar=False,
        annot=table.map(lambda value: _shown(value, factor)),
        fmt="",
        annot_kws={"fontsize": 6},
        linewidths=0.5,
    )
    for (row, column), value in np.ndenumerate(table.to_numpy()):
        if value >= paper:
            axes.add_patch(Rectangle((column, row), 1, 1, fill=False, lw=1.2, ec="black"))
    axes.set(xlabel="", ylabel="")
    axes.tick_params(labelsize=6, rotation=0)


def _shown(value: float, factor: float) -> str:
    if np.isnan(value):
        return "n/a"
    return f"{value:.3g}" if factor == 1.0 else f"{value + 0.0:.1f}".replace("-0.0", "0.0")


def _line(rows: pd.DataFrame, axis: str) -> Figure:
    """Draw each claim over one axis, with its interval."""
    figure, panels = plt.subplots(
        len(CLAIMS), 1, sharex=True, figsize=(style.WIDTH_IN, 1.1 * len(CLAIMS) + 0.5)
    )
    at = np.arange(len(rows))
    for panel, (claim, (title, paper, factor)) in zip(panels, CLAIMS.items(), strict=True):
        value, low, high = (
            pd.to_numeric(rows[name], errors="coerce").to_numpy(float) * factor
            if name in rows
            else np.full(len(rows), np.nan)
            for name in (claim, f"{claim} low", f"{claim} high")
        )
        panel.plot(at, value, color="0.2", marker="o", markersize=3)
        panel.vlines(at, low, high, color="0.2", linewidth=0.8)
        panel.axhline(paper, color="0.5", linewidth=0.8, linestyle="--")
        panel.set_title(title, loc="left", fontsize=7)
        panel.grid(visible=True, alpha=0.5)
    panels[-1].set_xticks(at, [_text(value) for value in rows[axis]], fontsize=7)
    panels[-1].set_xlabel(last_part(axis))
    return figure


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)
