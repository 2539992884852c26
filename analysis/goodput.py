"""Which requests are good under an SLO, and of how many nobody can say it.

A request is bad if it did not end ok, or if it misses a limit whose quantity is known. It is good
if it meets every limit that applies (an answer of one token has no tpot). In between, where a
quantity that a limit needs is unknown (a server that does not count its tokens), it is unjudged:
then the share of good requests has bounds, and no value.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis import metrics
from bellman.slo import Slo

COLUMNS = ("ttft_s", "tpot_s", "e2e_s")


@dataclass(frozen=True)
class Judged:
    """The intended requests of some part of the schedule, judged."""

    requests: int
    good: int
    unjudged: int
    unknown: tuple[str, ...] = ()
    """The quantities that are unknown of the unjudged requests."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Smallest and largest share of good requests; None where nothing was intended."""
        if not self.requests:
            return None
        return self.good / self.requests, (self.good + self.unjudged) / self.requests

    @property
    def fraction(self) -> float | None:
        """Good / all intended requests; None where any is unjudged."""
        return None if self.unjudged or not self.requests else self.good / self.requests

    @property
    def reason(self) -> str | None:
        """Why there is no fraction; None where there is one."""
        if self.unjudged:
            what = " and ".join(self.unknown)
            return f"{self.unjudged} of {self.requests} requests cannot be judged: {what} unknown"
        return None if self.requests else "no request was intended"

    def keeps(self, share: float) -> bool | None:
        """Whether at least `share` of the requests are good; None where that is not known."""
        if self.bounds is None:
            return None
        low, high = self.bounds
        return True if low >= share else False if high < share else None

    def goodput_rps(self, length_s: float) -> float | None:
        """Return good requests / length; None where any is unjudged."""
        return self.good / length_s if length_s > 0 and not self.unjudged else None


def verdicts(requests: pd.DataFrame, slo: Slo) -> pd.Series:
    """Return for each request True (good), False (bad) or NA (unjudged), by Kleene's logic."""
    bad = ~metrics.is_ok(requests)
    unjudged = np.zeros(len(requests), dtype=bool)
    for column in COLUMNS:
        limit_s = getattr(slo, column)
        if limit_s is not None:
            unknown = metrics.unknown(requests, column)
            known = metrics.applies(requests, column) & ~unknown
            bad |= known & ~(requests[column] <= limit_s).to_numpy(dtype=bool)
            unjudged |= unknown
    met = pd.arrays.BooleanArray(~bad, unjudged & ~bad)
    return pd.Series(met, index=requests.index)


def judge(requests: pd.DataFrame, slo: Slo) -> Judged:
    """Judge the intended requests of one arm in one part of the schedule."""
    met = verdicts(requests, slo)
    unjudged = requests[met.isna()]
    unknown = [
        column.removesuffix("_s")
        for column in COLUMNS
        if getattr(slo, column) is not None and metrics.unknown(unjudged, column).any()
    ]
    good = int(met.fillna(value=False).sum())
    return Judged(len(requests), good, len(unjudged), tuple(unknown))
