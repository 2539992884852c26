"""Claims map: each reading of the claims over the grids, all at once, and the energy's price."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.claims_map import why
from analysis.claims_map.results import ENERGY, LATENCY, SERVED
from analysis.figures import style
from analysis.grid.points import text as axis_text
from analysis.plain import last_part
from analysis.together import READINGS

Values = dict[str, Any]
COLUMNS = 4
TICK_CHARACTERS = 28
"""Of all ticks across a panel, as long as they stand upright."""
TITLES = {
    "end-to-end latency": "e2e latency, times lower",
    "energy": "energy less in the window (%)",
    "requests served": "requests served more (%)",
}
"""Of the claims as they are defined; other readings of the energy are named after it."""

LETTERS = dict(zip(READINGS, "creoO", strict=True))
"""What stands for a reading in the panel of all three claims."""


def draw(found: Values) -> Iterator[tuple[str, Figure]]:
    """Yield name and figure: a map for each grid of two axes, one for all lines, the price."""
    lines: dict[str, list[Any]] = {}
    for number, (name, axes) in enumerate(found["grids"].items(), 1):
        drawn = [key for key, values in axes.items() if len(values) > 1]
        if len(drawn) == 2:
            yield f"claims_map_{number}", grid_figure(found, name, axes, drawn)
        else:
            lines[name] = drawn
    if lines:
        yield "claims_map_lines", lines_figure(found, lines)
    yield "claims_map_price", price_figure(found)


def shown_readings(found: Values) -> list[str]:
    """Return the readings that are drawn: the claims as defined, and every one of the energy."""
    points = found["points"]
    first = [names[0] for unit in (LATENCY, SERVED) if (names := why.names(points, unit))]
    return [*first, *why.names(points, ENERGY)]


def grid_figure(
    found: Values, name: str, axes: Mapping[str, list[Any]], drawn: list[str]
) -> Figure:
    """Draw a heat map a reading over two axes, and where all three claims hold."""
    across, down = sorted(drawn, key=lambda key: -len(axes[key]))
    names = shown_readings(found)
    rows = -(-(len(names) + 1) // COLUMNS)
    figure, panels = plt.subplots(
        rows,
        COLUMNS,
        squeeze=False,
        sharex=True,
        sharey=True,
        figsize=(style.WIDE_IN, 0.6 + rows * (0.35 + 0.24 * len(axes[down]))),
    )
    common = {key: values[0] for key, values in axes.items() if key not in drawn}
    places = [
        [common | {across: right, down: below} for right in axes[across]] for below in axes[down]
    ]
    points = [[point_at(found, place) for place in row] for row in places]
    ticks = [axis_text(value) for value in axes[across]], [axis_text(value) for value in axes[down]]
    # What is empty is above: the lowest row has the ticks.
    first = COLUMNS * (1 - rows) + len(names) + 1
    for panel in panels[0, first:]:
        panel.set_axis_off()
    used = [*panels[0, :first], *panels[1:].flat]
    for panel, reading in zip(used, names, strict=False):
        cells(panel, points, [reading] * len(points), ticks)
        panel.set_title(title(reading), fontsize=7)
    both(used[-1], points, ticks)
    for panel in panels[-1]:
        panel.set_xlabel(last_part(across))
    figure.supylabel(last_part(down))
    shared = "".join(f", {last_part(key)} {axis_text(value)}" for key, value in common.items())
    style.caption_lines(
        figure, f"{name}{shared}. {legend(found)} {letters_legend()}", source=found["source"]
    )
    return figure


def lines_figure(found: Values, lines: Mapping[str, list[Any]]) -> Figure:
    """Draw the grids of one axis: a row a reading, a column a value."""
    names = shown_readings(found)
    wide = [len(found["grids"][name][keys[0]]) for name, keys in lines.items()]
    figure, panels = plt.subplots(
        1,
        len(lines),
        squeeze=False,
        sharey=True,
        width_ratios=wide,
        figsize=(style.WIDE_IN, 0.9 + 0.2 * len(names)),
    )
    for panel, (name, (key, *_)) in zip(panels[0], lines.items(), strict=True):
        axes = found["grids"][name]
        common = {other: values[0] for other, values in axes.items() if other != key}
        row = [point_at(found, common | {key: value}) for value in axes[key]]
        ticks = [axis_text(value) for value in axes[key]], [title(reading) for reading in names]
        cells(panel, [row] * len(names), names, ticks)
        panel.set_title(name, fontsize=7)
        panel.set_xlabel(last_part(key))
    style.caption_lines(figure, legend(found), source=found["source"])
    return figure


def price_figure(found: Values) -> Figure:
    """Draw the saving in the window against the latency ratio, all points."""
    figure, axes = plt.subplots(figsize=(style.WIDTH_IN, 2.5))
    latency, energy = (why.names(found["points"], unit)[:1] for unit in (LATENCY, ENERGY))
    points = [
        (ratio, 100 * saving, bool(why.at_once(point)))
        for point in found["points"]
        if latency
        and energy
        and (ratio := why.value(point, latency[0])) is not None
        and (saving := why.value(point, energy[0])) is not None
    ]
    for chosen, look in ((False, "none"), (True, "full")):
        some = [(ratio, saving) for ratio, saving, holds in points if holds is chosen]
        if some:
            axes.plot(
                *np.array(some).T,
                linestyle="none",
                marker="o",
                markersize=3.5,
                color="0.15",
                fillstyle=look,
                label="all three claims, by some reading of the energy" if chosen else "not all",
            )
    style.log_seconds(axes, "x")
    axes.axvspan(8.0 / why.ABOUT, 8.0 * why.ABOUT, color="0.9", linewidth=0, zorder=0)
    axes.axhline(25.0, color="0.4", linewidth=0.8, linestyle="--")
    axes.set_ylim(top=max([29.0, *(1.1 * saving for _, saving, _ in points)]))
    axes.set(xlabel="e2e latency, times lower", ylabel="energy less in the window (%)")
    if points:
        figure.legend(loc="outside upper left", fontsize=style.MARK_PT)
    style.caption_lines(
        figure,
        f"{str(found['source']).capitalize()}, every point of the map. Dashed: the paper's 25 %; "
        f"grey: a ratio within {why.ABOUT:g} of its 8.",
        source=found["source"],
    )
    return figure


def point_at(found: Values, axes: Mapping[str, Any]) -> Values | None:
    """Return the point with these values of its axes."""
    return next((point for point in found["points"] if point["axes"] == axes), None)


def cells(
    panel: Axes,
    points: Sequence[Sequence[Values | None]],
    names: Sequence[str],
    ticks: tuple[list[str], list[str]],
) -> None:
    """Fill a panel: the reading of each row at each point, framed where it holds."""
    shape = (len(points), len(points[0]))
    share, written = np.full(shape, np.nan), np.full(shape, "", dtype=object)
    framed = np.full(shape, False)
    for (row, column), _ in np.ndenumerate(share):
        found = points[row][column]
        reading = next(
            (r for r in (found or {}).get("readings", []) if r["reading"] == names[row]), None
        )
        if reading is not None and reading["estimate"] is not None:
            share[row, column] = towards_paper(reading)
            written[row, column] = number(reading)
            framed[row, column] = reading["holds"]
    heat(panel, share, written, framed, ticks)


def both(
    panel: Axes, points: Sequence[Sequence[Values | None]], ticks: tuple[list[str], list[str]]
) -> None:
    """Fill a panel: by which readings of the energy all three claims hold."""
    shape = (len(points), len(points[0]))
    share, written = np.full(shape, np.nan), np.full(shape, "", dtype=object)
    for (row, column), _ in np.ndenumerate(share):
        point = points[row][column]
        if point is not None and not point["invalid_reasons"]:
            names = why.at_once(point)
            share[row, column] = float(bool(names))
            written[row, column] = "".join(LETTERS[name] for name in names) or "-"
    heat(panel, share, written, share == 1.0, ticks)
    panel.set_title("all three at once", fontsize=7)


def heat(
    panel: Axes, share: Any, written: Any, framed: Any, ticks: tuple[list[str], list[str]]
) -> None:
    """Draw cells from no effect (white) to the paper's figure (full colour), with their text."""
    import seaborn as sns  # noqa: PLC0415 - a second to import, for maps only

    sns.heatmap(
        pd.DataFrame(share, columns=ticks[0], index=ticks[1]),
        ax=panel,
        vmin=-1.0,
        vmax=1.0,
        cmap="PuOr",
        cbar=False,
        annot=written,
        fmt="",
        annot_kws={"fontsize": 6},
        linewidths=0.5,
    )
    for (row, column), holds in np.ndenumerate(framed):
        if np.isnan(share[row, column]):
            panel.text(column + 0.5, row + 0.5, "n/a", ha="center", va="center", fontsize=6)
        if holds:
            panel.add_patch(
                Rectangle((column, row), 1, 1, fill=False, lw=1.3, ec="black", clip_on=False)
            )
    panel.set(xlabel="", ylabel="")
    panel.tick_params(labelsize=6, rotation=0, length=0)
    if sum(map(len, ticks[0])) > TICK_CHARACTERS:
        panel.tick_params(axis="x", labelrotation=20)


def towards_paper(reading: Values) -> float:
    """Return 0 at no effect and 1 at the paper's figure; ratios by their logarithms."""
    value, paper = float(reading["estimate"]), float(reading["paper_value"])
    if reading["unit"] == LATENCY:
        return float(np.log(value) / np.log(paper)) if 0 < value < np.inf else np.nan
    return value / paper


def number(reading: Values) -> str:
    """Return a ratio with three digits, a share as a percentage with one decimal."""
    value = float(reading["estimate"])
    if reading["unit"] == LATENCY:
        return f"{value:.3g}"
    return f"{round(100 * value, 1) + 0.0:.1f}"


def title(reading: str) -> str:
    """Return a panel's title."""
    claim, _, other = reading.partition(": ")
    return TITLES.get(reading, f"{claim} less, {other} (%)")


def letters_legend() -> str:
    """Say what the letters of the last panel mean."""
    meant = ", ".join(f"{letter} {reading}" for reading, letter in LETTERS.items())
    return f"All three at once, by the reading of the energy: {meant}."


def legend(found: Values) -> str:
    """Say what all maps show."""
    return (
        f"{str(found['source']).capitalize()}, {found['treatment']} against {found['baseline']}. "
        "Framed: the paper's figure, by the rules of the verdicts; colour: from no effect to it."
    )
