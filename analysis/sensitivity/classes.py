"""Requests that listen to the signal beside those that do not: what each class gets."""

from typing import Any

import pandas as pd

from analysis import metrics
from analysis.goodput import judge
from bellman.load.schedule import CONGESTED
from bellman.signal_path import listens
from bellman.slo import Slo

Values = dict[str, float | None]
NAMES = (
    *("words_listening", "words_others", "e2e_listening_s", "e2e_others_s"),
    *("fairness_words", "fairness_slo"),
)


def of_classes(requests: pd.DataFrame, share: float, seed: int, slo: Slo) -> Values:
    """Return what the two classes got under congestion; null where there is one class alone."""
    congested = requests[requests["phase"] == CONGESTED]
    chosen = [listens(int(number), share, seed) for number in congested["request_id"]]
    mask = pd.Series(chosen, index=congested.index, dtype=bool)
    classes = [congested[mask], congested[~mask]]
    if any(rows.empty for rows in classes):
        return dict.fromkeys(NAMES)
    words = [metrics.mean(rows, "output_words") for rows in classes]
    e2e_s = [metrics.latency_mean(rows, "e2e_s") for rows in classes]
    attained = [judge(rows, slo).fraction for rows in classes]
    found: list[Any] = [*words, *e2e_s, jain(words), jain(attained)]
    return dict(zip(NAMES, found, strict=True))


def jain(shares: list[float | None]) -> float | None:
    """Return Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all get the same, 1/n if one all.

    Null where a share is unknown, or all are 0.
    """
    known = [share for share in shares if share is not None]
    squares = sum(share**2 for share in known)
    if len(known) < len(shares) or squares == 0:
        return None
    return sum(known) ** 2 / (len(known) * squares)
