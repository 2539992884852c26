"""Power over time, and the energy of each window."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.bars import draw_bars
from analysis.figures.over_time import draw_column
from analysis.frames import Run
from bellman.records import DRAIN, WARMUP

POSITION = 5


def draw(run: Run) -> Figure:
    """Draw mean power, and the joules of every window as bars."""
    figure, (power, energy) = plt.subplots(2, 1, figsize=(style.WIDTH_IN, 3.4))
    reason = _reason(run)
    if draw_column(run, power, "power_w", "GPU power (W)", reason):
        style.shade_congestion(run, power, label=True)
        style.time_axis(run, power)
        power.set_ylim(bottom=0)
        style.legend(run, figure, power)
    _draw_windows(run, energy, reason)
    figure.align_ylabels([power, energy])
    methods = sorted(set(run.energy.loc[run.energy["energy_j"].notna(), "method"].dropna()))
    sources = sorted(set(run.energy["source"].dropna()))
    text = "Energy not measured."
    if methods:
        text = f"Energy {' + '.join(sources)} ({', '.join(methods)}). Power: means of 5 s. Bars: "
        text += "mean over repeats; whiskers and band: smallest to largest repeat."
    style.caption(run, figure, text)
    return figure


def _draw_windows(run: Run, axes: Axes, reason: str) -> None:
    names = [phase.name for phase in run.phases if phase.name != WARMUP] + [DRAIN]
    rows = run.energy[run.energy["window"].isin(names) & run.energy["energy_j"].notna()]
    if rows.empty:
        style.not_measured(axes, "energy", reason)
        return
    rows = rows.assign(energy_kj=rows["energy_j"] / 1000)
    draw_bars(run, axes, rows, "window", "energy_kj")
    axes.set(xlabel="window of the episode", ylabel="GPU energy (kJ)")


def _reason(run: Run) -> str:
    reasons = sorted(set(run.energy["reason"].dropna()))
    return "; ".join(reasons) or "no energy was recorded"
