"""Words written against words asked, for a run whose answers come from a recorded bank."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.frames import Run
from bellman.errors import ConfigError, RunError
from bellman.responses.recorded import RecordedBank, read_recorded

POSITION = 9
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def draw(run: Run) -> Figure | None:
    """Draw the length compliance of the run's bank; None for a run without a recorded one."""
    bank = (run.config.get("engine") or {}).get("bank") or {}
    if not str(bank.get("_target_", "")).endswith(f".{RecordedBank.__name__}"):
        return None
    figure, axes = plt.subplots(figsize=(style.WIDTH_IN, 2.6))
    try:
        table, metadata = read_recorded(RecordedBank(bank["path"]).file)
    except (ConfigError, RunError) as error:
        style.not_measured(axes, "words written", str(error))
        style.caption(run, figure, "The response bank is not here.")
        return figure
    answers = table.to_pandas()
    draw_answers(figure, axes, answers)
    style.caption(run, figure, describe(answers, metadata))
    return figure


def draw_bank(answers: pd.DataFrame, metadata: dict[str, str]) -> Figure:
    """Draw a bank alone: one row of `answers` per document and asked length."""
    figure, axes = plt.subplots(figsize=(style.WIDTH_IN, 2.6))
    draw_answers(figure, axes, answers)
    source = f"recorded from {metadata['model']}"
    style.caption_lines(figure, describe(answers, metadata), source=source)
    return figure


def spread(answers: pd.DataFrame) -> pd.DataFrame:
    """Return mean and quantiles of the words written, a row per asked words in rising order."""
    by_ask = answers.groupby("asked_words")["words"]
    columns = {"mean": by_ask.mean()} | {f"q{q:g}": by_ask.quantile(q) for q in QUANTILES}
    return pd.DataFrame(columns)


def draw_answers(figure: Figure, axes: Axes, answers: pd.DataFrame) -> None:
    """Draw mean, median and two bands of the words written by the words asked for."""
    rows = spread(answers)
    asked = rows.index.to_numpy(dtype=np.float64)
    axes.fill_between(asked, rows["q0.05"], rows["q0.95"], color="0.88", lw=0, label="5 to 95 %")
    axes.fill_between(asked, rows["q0.25"], rows["q0.75"], color="0.74", lw=0, label="25 to 75 %")
    axes.plot(asked, rows["q0.5"], color="0.2", ls=":", label="median")
    axes.plot(asked, rows["mean"], color="0.1", marker="o", markersize=3, label="mean")
    axes.plot(asked, asked, color=style.COLOURS[0], ls="--", linewidth=0.8, label="as asked")
    style.log_seconds(axes, "y")
    style.log_at(axes, "x", asked.tolist(), most=9)
    axes.set(xlabel="words asked for", ylabel="words written")
    figure.legend(loc="outside upper center", ncols=3)


def describe(answers: pd.DataFrame, metadata: dict[str, str]) -> str:
    """Return the caption: whose answers, and how many; those asked to be concise are not shown."""
    answers = answers[answers["asked_words"].notna()]
    documents = answers["document_id"].nunique()
    cut = (answers["finish_reason"] == "length").mean()
    return (
        f"Recorded answers of {metadata['model']} over {metadata['corpus']}: {documents} documents "
        f"at each length, which the bands are over; {cut:.0%} of all answers were cut at the "
        "token limit."
    )
