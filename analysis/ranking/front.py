"""The Pareto front: the arms that no other arm beats in both of two quantities."""

from collections.abc import Sequence
from typing import Any

from analysis.ranking.results import LOST_SHARE

Values = dict[str, Any]


def comparable(one: Values, quality: str, cost: str) -> bool:
    """Whether an arm can stand on a front: both are known, and it serves all but a hundredth.

    The mean latency of those that an arm did not refuse is not the latency of its users.
    """
    known = one[quality]["value"] is not None and one[cost] is not None
    return bool(known and one["lost_share"] is not None and one["lost_share"] <= LOST_SHARE)


def front(rows: Sequence[Values], quality: str, cost: str) -> list[Values]:
    """Return the arms that none beats in quality (more is better) and `cost` (less is better)."""
    those = [one for one in rows if comparable(one, quality, cost)]
    kept = [one for one in those if not any(beats(other, one, quality, cost) for other in those)]
    return sorted(kept, key=lambda one: float(one[cost]))


def beats(other: Values, one: Values, quality: str, cost: str) -> bool:
    """Whether an arm is as good in both quantities and better in one."""
    better = other[quality]["value"] - one[quality]["value"]
    cheaper = float(one[cost]) - float(other[cost])
    return bool(better >= 0 and cheaper >= 0 and (better > 0 or cheaper > 0))
