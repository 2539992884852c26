"""What all figures share: size, type, colours of the arms, shading, the caption inside, saving."""

import logging
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from analysis.frames import Run, few
from bellman.load.schedule import CONGESTED

mpl.use("agg")

WIDTH_IN = 3.5
"""One column of a two-column paper."""
CAPTION_PT = 6.0
CAPTION_CHARACTERS = 76
"""A line of the caption at WIDTH_IN."""
BOLD_CHARACTERS = 66
LINE_STYLES = ("--", "-", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

RC = {
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.titlesize": 7.5,
    "legend.fontsize": 7.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.frameon": False,
    "text.parse_math": False,  # a name with dollar signs is a name
    "pdf.fonttype": 42,  # text stays text
    "figure.constrained_layout.use": True,
}


def use_style() -> None:
    """Set seaborn's theme and the sizes above; call once before drawing."""
    # Writing PDF reports every glyph at the level that experiments log at.
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    sns.set_theme(context="paper", style="ticks", palette="colorblind", rc=RC)


def palette(run: Run) -> dict[str, tuple[float, float, float]]:
    """Return a colour for every arm, distinguishable with any colour vision."""
    colours = sns.color_palette("colorblind", len(run.arms))
    return dict(zip(run.arms, colours, strict=True))


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
            fontsize=6.5,
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
    axis = axes.yaxis if which == "y" else axes.xaxis
    axes.set(**{f"{which}scale": "log"})
    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


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
        columns = len(handles) if len(handles) <= 5 else 3
        figure.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=columns,
            handlelength=1.8,
            columnspacing=1.0,
        )


def caption(run: Run, figure: Figure, text: str) -> None:
    """Write the caption under the panels: source, repeats, what is drawn, and what is wrong.

    Call it last: it takes its height from the panels.
    """
    repeats = run.requests["repeat"].nunique()
    start = f"{run.source.capitalize()}, {repeats} repeat{'s' if repeats != 1 else ''}. "
    caption_lines(figure, start + text, _warnings(run))


def caption_lines(figure: Figure, text: str, warnings: Sequence[str] = ()) -> None:
    """Write a caption that names its source itself; for figures that are not of one run."""
    columns = figure.get_figwidth() / WIDTH_IN
    lines = textwrap.wrap(text, int(columns * CAPTION_CHARACTERS))
    bold = int(columns * BOLD_CHARACTERS)
    warnings = [line for warning in warnings for line in textwrap.wrap(warning, bold)]
    height_in = float(figure.get_figheight())
    line_in = CAPTION_PT * 1.3 / 72
    share = ((len(lines) + len(warnings)) * line_in + 0.06) / height_in
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0, share, 1, 1 - share))
    _write(figure, 0.015, lines, "0.2", "normal")
    if warnings:
        _write(figure, len(lines) * line_in + 0.025, warnings, "#b00000", "bold")


def _write(figure: Figure, bottom_in: float, lines: list[str], colour: str, weight: str) -> None:
    figure.text(
        0.015,
        bottom_in / figure.get_figheight(),
        "\n".join(lines),
        color=colour,
        weight=weight,
        ha="left",
        va="bottom",
        fontsize=CAPTION_PT,
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


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name`.pdf and `name`.png, without dates or versions: equal records, equal files."""
    pdf, png = folder / f"{name}.pdf", folder / f"{name}.png"
    figure.savefig(png, dpi=300, metadata={"Software": None})
    figure.set_layout_engine("none")  # it is laid out; to do it again takes as long as to draw
    figure.savefig(pdf, metadata={"CreationDate": None, "Producer": None, "Creator": None})
    return [pdf, png]
