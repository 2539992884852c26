"""Mean scores of an arm's answers, with intervals over the documents.

Which documents were sampled is what is uncertain about a mean score: every repeat uses the same
ones equally often, so that repeats hardly differ and say nothing of other documents.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from analysis.frames import Run
from analysis.statistics import Array, Estimate, Index, bootstrap, divide, pooled_mean

DEFINITION = (
    "mean over the counted ok requests; 95 % interval over the sampling of documents (bootstrap "
    "of whole documents; a difference is paired by document)"
)


def quality(run: Run, arm: str) -> dict[str, Any] | None:
    """Return an arm's mean scores over its complete repeats; None where nothing was scored.

    `rouge1_f1_difference` and the like are the arm's mean minus the baseline's.
    """
    own, base = _scored(run, arm), _scored(run, run.baseline)
    scores_of = ("rouge", "token_")
    names = [n for n in own.columns if n.startswith(scores_of) and own[n].notna().any()]
    if not names:
        return None
    documents = sorted({*own["document_id"].unique(), *base["document_id"].unique()})
    own_scores, base_scores = (_by_document(rows, names, documents) for rows in (own, base))
    scores: dict[str, Any] = {"response_source": run.response_source, "definition": DEFINITION}
    scores |= {"requests": len(_counted(run, arm)), "scored": len(own)}
    for name in names:
        sums, counts = own_scores[name]
        scores[name] = asdict(pooled_mean(sums, counts))
        if name.endswith("_f1") and arm != run.baseline and len(base):
            difference = difference_over_documents(sums, counts, *base_scores[name])
            scores[f"{name}_difference"] = asdict(difference)
    return scores


def difference_over_documents(
    sums: Array, counts: Array, base_sums: Array, base_counts: Array
) -> Estimate:
    """Estimate the mean of one arm minus that of another, which saw the same documents."""

    def statistic(index: Index) -> Array:
        mean = divide(sums[index].sum(axis=1), counts[index].sum(axis=1))
        base = divide(base_sums[index].sum(axis=1), base_counts[index].sum(axis=1))
        difference: Array = mean - base
        return difference

    return bootstrap(statistic, len(sums), is_ratio=False)


def _scored(run: Run, arm: str) -> pd.DataFrame:
    """Return document and scores of every counted ok request that was scored."""
    if run.quality is None:
        return pd.DataFrame(columns=["document_id"])
    return _counted(run, arm)[["text_id"]].merge(run.quality, on="text_id")


def _counted(run: Run, arm: str) -> pd.DataFrame:
    """Return the counted ok requests of the complete repeats."""
    counted = [phase.name for phase in run.counted_phases]
    rows = run.requests[(run.requests["arm"] == arm) & run.requests["ok"]]
    return rows[rows["phase"].isin(counted) & rows["repeat"].isin(run.complete_repeats(arm))]


def _by_document(
    rows: pd.DataFrame, names: list[str], documents: list[str]
) -> dict[str, tuple[Array, Array]]:
    """Return sum and number of each score's values for each of the documents."""
    groups = rows.groupby("document_id")[names]
    sums, counts = (
        found.reindex(documents, fill_value=0).astype(np.float64)
        for found in (groups.sum(), groups.count())
    )
    return {name: (sums[name].to_numpy(), counts[name].to_numpy()) for name in names}
