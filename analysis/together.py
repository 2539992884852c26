"""Whether the paper's three claims hold at once, by each reading of the one about energy."""

from collections.abc import Sequence
from typing import Any

from analysis.energy_claim import PER_REQUEST, WHOLE_EPISODE
from analysis.own_period import OWN_PERIOD
from analysis.verdict import Claim, Verdict

LATENCY, ENERGY, SERVED = "end-to-end latency", "energy", "requests served"
READINGS: dict[str, tuple[str | None, str | None]] = {
    "congested window": (None, None),
    PER_REQUEST: (PER_REQUEST, None),
    WHOLE_EPISODE: (WHOLE_EPISODE, None),
    f"{OWN_PERIOD} for energy alone": (OWN_PERIOD, None),
    f"{OWN_PERIOD} for all three": (OWN_PERIOD, OWN_PERIOD),
}
"""The companion that is the reading of energy, and the one of latency and requests served; None is
the claim itself, which is of the congested phase."""


def together(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """Return the three verdicts by each reading, for each treatment that has any.

    `reproduced` is whether all three are; null where one was not measured.
    """
    found: list[dict[str, Any]] = []
    for treatment in dict.fromkeys(claim.treatment for claim in claims):
        by_name = {claim.name: claim for claim in claims if claim.treatment == treatment}
        if any(claim.verdict == "no claim" for claim in by_name.values()):
            continue
        for reading, (of_energy, of_others) in READINGS.items():
            verdicts = {
                name: verdict_of(by_name[name], of_energy if name == ENERGY else of_others)
                for name in (LATENCY, ENERGY, SERVED)
            }
            measured = "not measured" not in verdicts.values()
            at_once = set(verdicts.values()) == {"reproduced"} if measured else None
            entry = {"treatment": treatment, "reading": reading, "reproduced": at_once}
            found.append(entry | {"verdicts": verdicts})
    return found


def verdict_of(claim: Claim, reading: str | None) -> Verdict:
    """Return the verdict of a claim, or of another reading of it."""
    if reading is None:
        return claim.verdict
    verdicts = (one.verdict for one in claim.companions if one.name == reading)
    return next(verdicts, None) or "not measured"
