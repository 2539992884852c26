"""Every arm's place: SLO attainment, latency, energy a good request, quality; from summary.json.

All over the counted requests of the complete repeats. A refused or failed request is not good, and
its latency is +inf in the percentiles: refusing the slow ones makes no arm look better.
"""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from analysis.rows import FLOW
from analysis.statistics import Array, Estimate, Index, bootstrap

Values = dict[str, Any]
LOST_SHARE = 0.01
"""An arm that loses a larger share of its requests than this has no mean latency to compare."""


def ranking(summary: Values) -> list[Values]:
    """Return a row for each arm, the highest SLO attainment first; unknown ones last."""
    rows = [row(name, arm) for name, arm in summary["arms"].items()]
    return sorted(
        rows, key=lambda one: (one["slo_attainment"] is None, -(one["slo_attainment"] or 0))
    )


def row(name: str, arm: Values) -> Values:
    """Return the quantities of one arm; None where they are not known."""
    congested = arm["phases"].get("congested", {})
    quality = arm["quality"] or {}
    attainment, offered, energy_j = arm["slo_attainment"], arm["offered"], arm["energy_j"]
    good = None if attainment is None or offered is None else round(attainment * offered)
    return {
        "arm": name,
        "slo_attainment": attainment,
        "attainment_of_repeats": [part["slo_attainment"] for part in arm["repeats"]],
        "e2e_mean_s": arm["e2e_mean_s"],
        "congested_e2e_mean_s": congested.get("e2e_mean_s"),
        "congested_e2e_p99_s": congested.get("e2e_p99_s"),
        "energy_j_per_good_request": energy_j / good if good and energy_j is not None else None,
        **{name: arm.get(name) for name in FLOW},
        "lost_share": arm["lost_share"],
        "e2e_all_mean_s": arm.get("e2e_all_mean_s"),
        "words": arm["output_words_mean"],
        "rouge1_f1": score(quality, "rouge1_f1"),
        "rouge1_recall": score(quality, "rouge1_recall"),
    }


def score(quality: Values, name: str) -> Values:
    """Return a mean score with its interval."""
    return quality.get(name) or asdict(Estimate(None))


def shortens(one: Values, baseline: Values) -> bool:
    """Whether an arm writes shorter answers than the baseline and serves all that it serves."""
    known = None not in (one["words"], baseline["words"], one["lost_share"])
    return bool(known and one["words"] < baseline["words"] and one["lost_share"] <= LOST_SHARE)


def more_attained(one: Values, other: Values) -> Estimate:
    """Estimate by how much an arm attains more than another, over the repeats of both."""
    pairs = zip(one["attainment_of_repeats"], other["attainment_of_repeats"], strict=True)
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    differences: Array = np.array([a - b for a, b in known], dtype=np.float64)

    def mean(index: Index) -> Array:
        means: Array = differences[index].mean(axis=1)
        return means

    return bootstrap(mean, len(differences), is_ratio=False)


def at_equal_length(rows: Sequence[Values], static: Sequence[str]) -> list[Values]:
    """Return, for each arm between two arms of fixed length, what these give at its mean length.

    Straight lines between the two whose mean words lie next to it: answers that are always asked
    for at one length, mixed so that the mean is the same.
    """
    fixed = sorted(
        (one for one in rows if one["arm"] in static and one["words"] is not None),
        key=lambda one: one["words"],
    )
    found = []
    for one in rows:
        if one["arm"] in static or one["words"] is None:
            continue
        for short, long in pairwise(fixed):
            if short["words"] <= one["words"] <= long["words"] and short["words"] < long["words"]:
                share = (one["words"] - short["words"]) / (long["words"] - short["words"])
                found.append(
                    {"arm": one["arm"], "words": one["words"], "own": matched(one, one, 0.0)}
                    | {"between": [short["arm"], long["arm"]]}
                    | {"static": matched(short, long, share)}
                )
                break
    return found


MATCHED = ("slo_attainment", "congested_e2e_mean_s", "energy_j_per_good_request")


def matched(short: Values, long: Values, share: float) -> Values:
    """Return what lies `share` of the way between two arms; None where one of them has nothing."""
    values = {name: (short[name], long[name]) for name in MATCHED}
    values["rouge1_f1"] = (short["rouge1_f1"]["value"], long["rouge1_f1"]["value"])
    return {
        name: None if low is None or high is None else (1 - share) * low + share * high
        for name, (low, high) in values.items()
    }
