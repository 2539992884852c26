"""The joules of a run so far; what was not measured is no 0."""

from collections.abc import Iterable
from dataclasses import dataclass

from analysis.plan import EPISODE
from analysis.watch.cells import DoneCell


@dataclass(frozen=True)
class EnergySoFar:
    """Joules of the episodes that are done, without their warm-up."""

    joules: float | None
    text: str
    """Of how many episodes, or why there are none."""


def energy_so_far(done: Iterable[DoneCell]) -> EnergySoFar:
    """Add up what was measured; None where no episode has joules."""
    episodes = [cell for cell in done if cell.kind == EPISODE]
    joules = [cell.energy_j for cell in episodes if cell.energy_j is not None]
    reasons = {cell.energy_reason for cell in episodes if cell.energy_j is None}
    named = "; ".join(sorted(reason or "no reading" for reason in reasons))
    if not episodes:
        return EnergySoFar(None, "no episode is done")
    if not joules:
        return EnergySoFar(None, named)
    lacking = len(episodes) - len(joules)
    text = f"of {len(joules)} done episodes, without their warm-up"
    return EnergySoFar(sum(joules), f"{text}; {lacking} without: {named}" if lacking else text)
