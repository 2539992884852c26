"""What all figures share: the paper's format, colours and marks of the arms, caption, saving.

A figure is one or two columns of a two-column paper wide, in type of 8 pt. Its caption is no part
of it but a text file beside it; inside stand its source (`simulated`, `measured`) and whatever
makes the run doubtful, so that they stay with the picture wherever it goes.
"""

import logging
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, LogLocator, NullLocator

from analysis.frames import Run, few
from analysis.prefix_caching import found_in, in_words
from bellman.load.schedule import CONGESTED
from bellman.records import write_text

mpl.use("agg")

WIDTH_IN = 3.35
"""One column of a two-column paper."""
WIDE_IN = 7.0
"""Both columns and the space between them."""
DPI = 300
TYPE_PT = 8.0
MARK_PT = 6.5
"""Type of the line of source and warnings under the panels."""
BOLD_CHARACTERS = 60
"""A line of warnings at WIDTH_IN."""
LEGEND_CHARACTERS = 52
"""Of a legend's line at WIDTH_IN."""
LINE_STYLES = ("--", "-", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "////", "\\\\\\\\", "xxxx", "----", "||||")
"""Of bars: what a line's dashes are, for print in grey."""
COLOURS = (
    *("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc"),
    *("#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9"),
)
"""Distinguishable with any colour vision: the palette that seaborn calls `colorblind`."""
PAGE, PAPER = ("svg",), ("pdf", "png")
"""Formats of the figures of a report, and of those for a paper."""
METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}

RC: dict[Any, Any] = {
    # Bundled with matplotlib: the same picture on every machine.
    "font.family": ["DejaVu Sans"],
    "font.size": TYPE_PT,
    "axes.labelsize": TYPE_PT,
    "axes.titlesize": TYPE_PT,
    "figure.labelsize": TYPE_PT,
    "legend.fontsize": TYPE_PT,
    "xtick.labelsize": TYPE_PT,
    "ytick.labelsize": TYPE_PT,
    "text.color": "0.15",
    "axes.labelcolor": "0.15",
    "axes.edgecolor": "0.15",
    "xtick.color": "0.15",
    "ytick.color": "0.15",
    "grid.color": "0.8",
    "axes.axisbelow": True,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "hatch.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.frameon": False,
    "text.parse_math": False,  # a name with dollar signs is a name
    "axes.formatter.useoffset": False,  # no number is to be added to those of an axis,
    "axes.formatter.limits": (-9, 9),  # nor do they want a factor
    "pdf.fonttype": 42,  # text stays text
    "svg.fonttype": "none",
    "svg.hashsalt": "bellman",  # else equal records give unequal files
    "figure.constrained_layout.use": True,
    "figure.dpi": DPI,  # a text is not as wide at every resolution, and it is laid out once
}


def use_style() -> None:
    """Set the format above; call once before drawing."""
    # Writing PDF reports every glyph at the level that experiments log at.
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    mpl.rcdefaults()
    mpl.use("agg")
    mpl.rcParams.update(RC)


def begin(folder: Path) -> Path:
    """Set the format, and return the place for the figures of a run folder; before drawing."""
    target = folder / "figures"
    target.mkdir(exist_ok=True)
    use_style()
    return target


def colours(count: int) -> list[str]:
    """Return a colour for each of `count` things; after ten they begin again."""
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def palette(run: Run) -> dict[str, str]:
    """Return a colour for every arm."""
    return dict(zip(run.arms, colours(len(run.arms)), strict=True))


def hatch(run: Run, arm: str) -> str:
    """Return the hatch of the arm's bars."""
    return HATCHES[run.arms.index(arm) % len(HATCHES)]


def line_style(run: Run, arm: str) -> str:
    """Return the arm's dash pattern: the second difference beside colour, for print in grey."""
    return LINE_STYLES[run.arms.index(arm) % len(LINE_STYLES)]


def marker(run: Run, arm: str) -> str:
    """Return the arm's marker."""
    return MARKERS[run.arms.index(arm) % len(MARKERS)]


def point_look(run: Run, arm: str) -> dict[str, Any]:
    """Return what `plot` takes for an arm's line through single points."""
    return {
        "color": palette(run)[arm],
        "linestyle": line_style(run, arm),
        "marker": marker(run, arm),
        "markersize": 3,
        "label": arm,
    }


def shade_congestion(run: Run, axes: Axes, label: bool = False) -> None:
    """Shade the congested phase on a time axis, and name it above where `label` is set."""
    phase = run.phase(CONGESTED)
    if phase is None:
        return
    axes.axvspan(phase.start_s, phase.end_s, color="0.9", linewidth=0, zorder=0)
    if label:
        axes.annotate(
            "congested",
            ((phase.start_s + phase.end_s) / 2, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 1),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=MARK_PT,
            color="0.35",
        )


def time_axis(run: Run, axes: Axes) -> None:
    """Label a time axis from the end of the warm-up to the last tick."""
    axes.set_xlabel("time in the episode (s)")
    start_s = run.counted_phases[0].start_s if run.counted_phases else 0.0
    ends = [float(episode["end_s"]) for episode in run.episodes if episode.get("end_s")]
    ends += [phase.end_s for phase in run.phases]
    if ends:
        axes.set_xlim(start_s, max(ends))


def log_seconds(axes: Axes, which: str) -> None:
    """Make an axis logarithmic with plain numbers at 1, 2 and 5 of each decade."""
    _logarithmic(axes, which, LogLocator(base=10, subs=(1.0, 2.0, 5.0)))


def log_at(axes: Axes, which: str, numbers: Sequence[float], most: int = 8) -> None:
    """Make an axis logarithmic with plain numbers at those that were measured, which it is left to.

    Of numbers so near to each other that more than `most` would find a place some are left out.
    """
    known = sorted(set(numbers))
    shown = known[:1]
    for number in known[1:]:
        if number >= shown[-1] * (known[-1] / known[0]) ** (1 / most):
            shown.append(number)
    _logarithmic(axes, which, FixedLocator(shown))


def _logarithmic(axes: Axes, which: str, at: Locator) -> None:
    axis = axes.yaxis if which == "y" else axes.xaxis
    axes.set(**{f"{which}scale": "log"})
    axis.set_major_locator(at)
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
    axis.set_minor_locator(NullLocator())


def plain_number(value: float) -> str:
    """Return a number's digits, without an exponent."""
    return np.format_float_positional(float(f"{value:.6g}"), trim="-")


def not_measured(axes: Axes, what: str, reason: str) -> None:
    """Fill a panel with `n/a` and the reason: an empty axis would look like zero."""
    axes.set_axis_off()
    text = textwrap.fill(f"{what}: n/a ({reason})", 50)
    note = axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    note.set(color="0.35", in_layout=False)


def legend(run: Run, figure: Figure, axes: Axes) -> None:
    """Put one legend of the arms above all panels."""
    handles, labels = axes.get_legend_handles_labels()
    own = axes.get_legend()
    if own is not None:
        own.remove()
    if handles:
        room = LEGEND_CHARACTERS * figure.get_figwidth() / WIDTH_IN
        needed = sum(len(label) + 6 for label in labels)  # 6: the line or patch before it
        columns = len(handles) if needed <= room else 3
        figure.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=columns,
            handlelength=1.8,
            columnspacing=1.0,
        )


def caption(run: Run, figure: Figure, text: str) -> None:
    """Give a figure of one run its caption: source, repeats, what is drawn. Call it last."""
    repeats = run.requests["repeat"].nunique()
    start = f"{run.source.capitalize()}, {repeats} repeat{'s' if repeats != 1 else ''}. "
    caching = found_in(run.episodes)
    if caching is not None:
        start += f"{in_words(caching).capitalize()}. "
    caption_lines(figure, start + text, _warnings(run), source=run.source)


def caption_lines(
    figure: Figure, text: str, warnings: Sequence[str] = (), *, source: str = ""
) -> None:
    """Give a figure a caption that names its source itself; for figures that are not of one run.

    Under the panels stand `source` and `warnings` alone, which take their height from them.
    """
    figure.set_label(" ".join([text, *warnings]))
    bold = int(figure.get_figwidth() / WIDTH_IN * BOLD_CHARACTERS)
    lines = [line for warning in warnings for line in textwrap.wrap(warning, bold)]
    height_in = float(figure.get_figheight())
    line_in = MARK_PT * 1.3 / 72
    share = ((len(lines) + bool(source)) * line_in + 0.03) / height_in
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    above = share
    if figure.get_supxlabel():  # else it would stand among the lines
        figure.supxlabel(figure.get_supxlabel(), y=share)
        above += TYPE_PT * 1.6 / 72 / height_in
    engine.set(rect=(0, above, 1, 1 - above))
    if source:
        _write(figure, 0.02, [source], "0.35", "normal")
    if lines:
        _write(figure, bool(source) * line_in + 0.02, lines, "#b00000", "bold")


def caption_of(figure: Figure) -> str:
    """Return a figure's caption."""
    return str(figure.get_label())


def _write(figure: Figure, bottom_in: float, lines: list[str], colour: str, weight: str) -> None:
    figure.text(
        0.01,
        bottom_in / figure.get_figheight(),
        "\n".join(lines),
        color=colour,
        weight=weight,
        ha="left",
        va="bottom",
        fontsize=MARK_PT,
        linespacing=1.15,
    )


def _warnings(run: Run) -> list[str]:
    warnings = []
    if run.cut_short:
        warnings.append(f"{run.cut_short.upper()} RUN: drawn from what was recorded")
    if run.invalid_text:
        warnings.append(f"INVALID RUN: {run.invalid_text}")
    if run.warnings:
        warnings.append(f"WARNING: {few(run.warnings)}")
    return warnings


def save(figure: Figure, folder: Path, name: str, kinds: Sequence[str] = PAPER) -> list[Path]:
    """Write the figure in some formats, and `name`.txt, its caption; returns all of them.

    Without dates or versions: equal records, equal files.
    """
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)
    files = []
    # It is laid out; else each file is drawn twice. Saving sets the engine again, by this entry.
    with mpl.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
        for kind in kinds:
            path = folder / f"{name}.{kind}"
            figure.savefig(path, dpi=DPI, metadata=METADATA[kind])
            files.append(path)
    path = folder / f"{name}.txt"
    write_text(caption_of(figure) + "\n", path)
    return [*files, path]
