"""Whether our own best law beats every other shortening arm at equal quality, in sentences."""

from collections.abc import Sequence
from typing import Any

from analysis.ranking.results import more_attained, shortens

Values = dict[str, Any]
MEASURES = {"rouge1_f1": "ROUGE-1 F1", "rouge1_recall": "ROUGE-1 recall"}
EQUAL = 0.01
"""Means of a score that differ by less are equal quality (ours); a better one is no worse."""


def sentences(rows: Sequence[Values], own: str, baseline: str) -> list[str]:
    """Return a sentence for each measure of quality; none where either arm is not there."""
    by_name = {one["arm"]: one for one in rows}
    if own not in by_name or baseline not in by_name:
        return []
    return [
        sentence(rows, by_name[own], by_name[baseline], name, words)
        for name, words in MEASURES.items()
    ]


def sentence(rows: Sequence[Values], own: Values, baseline: Values, name: str, words: str) -> str:
    """Say which shortening arms of equal or better quality the arm beats, and which it does not."""
    ours = own[name]["value"]
    if ours is None or own["slo_attainment"] is None:
        return f"{own['arm']}: its {words} or its SLO attainment is n/a, so it is not compared."
    rivals = [
        one
        for one in rows
        if one["arm"] not in (own["arm"], baseline["arm"])
        and shortens(one, baseline)
        and one[name]["value"] is not None
        and one[name]["value"] >= ours - EQUAL
    ]
    start = f"At equal {words} or better ({ours:.3f} - {EQUAL:g} or more)"
    if not rivals:
        return f"{start} there is no other shortening arm."
    not_beaten = [one for one in rivals if not is_beaten(own, one)]
    if not not_beaten:
        return (
            f"{start} {own['arm']} attains the SLO more often than each of the {len(rivals)} other "
            "shortening arms, and the intervals of the differences exclude 0."
        )
    named = ", ".join(f"{one['arm']} ({difference(own, one)})" for one in not_beaten)
    return (
        f"{start} {own['arm']} does not beat {len(not_beaten)} of the {len(rivals)} other "
        f"shortening arms: {named}."
    )


def is_beaten(own: Values, other: Values) -> bool:
    """Whether the difference of the attainments is positive with its whole interval."""
    estimate = more_attained(own, other)
    return estimate.low is not None and estimate.low > 0


def difference(own: Values, other: Values) -> str:
    """Return by how many percentage points the own arm attains more."""
    estimate = more_attained(own, other)
    if estimate.value is None:
        return "n/a"
    text = f"{100 * estimate.value:+.1f} points"
    if estimate.low is None or estimate.high is None:
        return f"{text}, no interval"
    return f"{text} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
