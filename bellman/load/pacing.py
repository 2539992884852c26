"""Did the requests leave when the schedule said so? Statistics, limits, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bellman.schema import Positive, schema


@dataclass(frozen=True, slots=True)
class PacingStatistics:
    """How the driver kept to the schedule, over the requests that it sent. Null below 2 requests.

    The lag of a request is the time it was sent minus the time it was to be sent: the client's own
    delay, not the server's.
    """

    intended: int
    sent: int
    lag_p50_s: float | None
    lag_p99_s: float | None
    lag_max_s: float | None
    offered_rps: float | None
    """(n - 1) / (last intended - first intended)."""
    achieved_rps: float | None
    """(n - 1) / (last sent - first sent)."""
    stall_max_s: float | None
    """Longest time by which the event loop was late for its heartbeat; null in virtual time, which
    stands still while the loop works."""


@schema
class PacingLimits:
    """Limits beyond which a run is invalid: its latencies are the client's, not the server's."""

    lag_p99_s: Positive
    """Limit of the 99th percentile of the lag, seconds."""
    rate_error: Positive
    """Limit of |achieved / offered - 1|."""
    stall_s: Positive
    """Limit of the event loop's longest stall, seconds."""

    def invalid_reasons(self, pacing: PacingStatistics) -> list[str]:
        """Return why the run is invalid; an empty list when it is valid."""
        reasons = []
        if pacing.offered_rps and pacing.achieved_rps:
            error = pacing.achieved_rps / pacing.offered_rps - 1
            if abs(error) > self.rate_error:
                reasons.append(
                    f"achieved rate {pacing.achieved_rps:.2f}/s is {error:+.1%} off the offered "
                    f"{pacing.offered_rps:.2f}/s (limit {self.rate_error:.1%})"
                )
        if pacing.lag_p99_s is not None and pacing.lag_p99_s > self.lag_p99_s:
            reasons.append(
                f"send lag p99 {1e3 * pacing.lag_p99_s:.1f} ms "
                f"(limit {1e3 * self.lag_p99_s:.1f} ms)"
            )
        if pacing.stall_max_s is not None and pacing.stall_max_s > self.stall_s:
            reasons.append(
                f"the event loop stalled for {1e3 * pacing.stall_max_s:.0f} ms "
                f"(limit {1e3 * self.stall_s:.0f} ms)"
            )
        return reasons


def summarize_pacing(
    intended: int, intended_s: Sequence[float], sent_s: Sequence[float], stall_max_s: float | None
) -> PacingStatistics:
    """Compute the statistics from intended and actual send times, in the order of sending."""
    sent = len(sent_s)
    if sent < 2:
        return PacingStatistics(intended, sent, None, None, None, None, None, stall_max_s)
    lag_s = np.subtract(sent_s, intended_s)
    p50_s, p99_s = np.percentile(lag_s, [50, 99])
    intended_span_s = max(intended_s) - min(intended_s)
    sent_span_s = max(sent_s) - min(sent_s)
    return PacingStatistics(
        intended,
        sent,
        float(p50_s),
        float(p99_s),
        float(lag_s.max()),
        (sent - 1) / intended_span_s if intended_span_s > 0 else None,
        (sent - 1) / sent_span_s if sent_span_s > 0 else None,
        stall_max_s,
    )
