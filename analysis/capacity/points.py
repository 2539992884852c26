"""What one point of the capacity experiment measured: a closed loop, or an open one at one rate."""

from dataclasses import dataclass

import pandas as pd

from analysis import metrics
from analysis.goodput import Judged, judge
from bellman.load.completion_rate import completion_rate
from bellman.slo import Slo

Window = tuple[float, float]
"""Start and end in seconds since the episode's start; the warm-up is before it."""


@dataclass(frozen=True)
class ClosedPoint:
    """N clients in a circle. L, lambda and W are measured apart, so that Little's law can fail."""

    arm: str
    clients: int
    test_length_s: float
    completed: int
    throughput_rps: float
    """lambda: completed / test length."""
    outstanding: float | None
    """L: mean of running + waiting requests as the server reports them; None where any report of
    the test is missing: a server that is too busy to answer holds more than the mean."""
    latency_s: float | None
    """W: mean e2e latency of the requests finished inside the window; not what users wait."""
    edge_requests: float = 0.0
    """What a finite window adds to lambda W: see `edges`."""
    low_rps: float | None = None
    high_rps: float | None = None
    """The throughput's interval: see `completion_rate`."""
    invalid_reasons: tuple[str, ...] = ()

    @property
    def littles_error(self) -> float | None:
        """L / (lambda W + edges) - 1."""
        if self.outstanding is None or not self.latency_s:
            return None
        expected = self.throughput_rps * self.latency_s + self.edge_requests
        return self.outstanding / expected - 1


@dataclass(frozen=True)
class OpenPoint:
    """Poisson arrivals at one rate."""

    arm: str
    rate_rps: float
    """The rate that the schedule was drawn for."""
    test_length_s: float
    offered_rps: float | None
    """Intended requests / test length."""
    achieved_rps: float | None
    """Sent requests / test length."""
    throughput_rps: float | None
    """Requests finished inside the test / its length."""
    goodput_rps: float | None
    judged: Judged
    """Good and unjudged ones among the intended requests."""
    lost_share: float | None
    e2e_mean_s: float | None
    e2e_p50_s: float | None
    e2e_p99_s: float | None
    service_mean_s: float | None
    """Mean from the actual send: what a client that hides its own queue would report."""
    ttft_p99_s: float | None
    lag_p99_s: float | None
    output_tokens_mean: float | None
    invalid_reasons: tuple[str, ...] = ()

    @property
    def slo_attainment(self) -> float | None:
        """Good / all intended requests; None where any is unjudged."""
        return self.judged.fraction


def closed_point(
    arm: str,
    clients: int,
    *,
    requests: pd.DataFrame,
    timeline: pd.DataFrame,
    window: Window,
    invalid_reasons: tuple[str, ...] = (),
) -> ClosedPoint:
    """Measure a closed-loop episode. `requests` and `timeline` hold that episode only.

    The test runs from one completion to another, so that it is cut where requests end: with a
    window cut anywhere, the few requests of a slow server would hide behind those that are cut. It
    begins with the window's n-th completion, n clients, and ends with the last: clients that are
    answered all at once, round by round, would otherwise add a round in no time.
    """
    finished = metrics.finished_inside(requests, *window).sort_values("last_token_s")
    start_s, end_s = window
    if len(finished) > clients:
        start_s, end_s = (float(finished["last_token_s"].iloc[at]) for at in (clients - 1, -1))
        finished = finished.iloc[clients:]
    inside = timeline[(timeline["time_s"] >= start_s) & (timeline["time_s"] < end_s)]
    rate = completion_rate(finished["last_token_s"].tolist(), start_s, end_s)
    outstanding = inside["running"] + inside["waiting"]
    reported = len(outstanding) > 0 and bool(outstanding.notna().all())
    return ClosedPoint(
        arm=arm,
        clients=clients,
        test_length_s=end_s - start_s,
        completed=len(finished),
        throughput_rps=len(finished) / (end_s - start_s),
        low_rps=rate.low_rps,
        high_rps=rate.high_rps,
        outstanding=float(outstanding.mean()) if reported else None,
        latency_s=metrics.latency_mean(finished, "e2e_s"),
        edge_requests=edges(requests, start_s, end_s),
        invalid_reasons=invalid_reasons,
    )


def edges(requests: pd.DataFrame, start_s: float, end_s: float) -> float:
    """Return what Little's law over a finite window has besides lambda W, in requests.

    The integral of the outstanding requests over [a, b] is the sum of the latencies that ended
    inside, less the ages of those out at a, plus the ages of those out at b (Kim and Whitt 2013):
    L = lambda W + (ages at b - ages at a) / (b - a). It vanishes with a longer test.
    """
    ends_s = requests["last_token_s"].fillna(requests["ended_s"])

    def ages_s(now_s: float) -> float:
        out = requests[(requests["intended_s"] <= now_s) & ~(ends_s <= now_s)]
        return float((now_s - out["intended_s"]).sum())

    return (ages_s(end_s) - ages_s(start_s)) / (end_s - start_s)


def open_point(
    arm: str,
    rate_rps: float,
    *,
    requests: pd.DataFrame,
    window: Window,
    slo: Slo,
    invalid_reasons: tuple[str, ...] = (),
) -> OpenPoint:
    """Measure an open-loop episode over the requests intended inside the window."""
    start_s, end_s = window
    length_s = end_s - start_s
    counted = requests[(requests["intended_s"] >= start_s) & (requests["intended_s"] < end_s)]
    judged = judge(counted, slo)
    return OpenPoint(
        arm=arm,
        rate_rps=rate_rps,
        test_length_s=length_s,
        offered_rps=metrics.offered_rate(counted, length_s),
        achieved_rps=metrics.achieved_rate(counted, length_s),
        throughput_rps=metrics.throughput(requests, start_s, end_s),
        goodput_rps=judged.goodput_rps(length_s),
        judged=judged,
        lost_share=metrics.lost_share(counted),
        e2e_mean_s=metrics.latency_mean(counted, "e2e_s"),
        e2e_p50_s=metrics.latency_percentile(counted, "e2e_s", 50),
        e2e_p99_s=metrics.latency_percentile(counted, "e2e_s", 99),
        service_mean_s=metrics.latency_mean(counted, "service_latency_s"),
        ttft_p99_s=metrics.latency_percentile(counted, "ttft_s", 99),
        lag_p99_s=metrics.lag_percentile(counted, 99),
        output_tokens_mean=metrics.mean(counted, "output_tokens"),
        invalid_reasons=invalid_reasons,
    )


def knee(points: list[ClosedPoint], share: float = 0.95) -> ClosedPoint:
    """Return the point with the fewest clients whose throughput is `share` of the highest."""
    highest_rps = max(point.throughput_rps for point in points)
    in_order = sorted(points, key=lambda point: point.clients)
    return next(point for point in in_order if point.throughput_rps >= share * highest_rps)


def highest_slo_rate(points: list[OpenPoint], slo_attainment: float) -> float | None:
    """Return the highest rate up to which every rate tried keeps the SLO attainment; None: none."""
    best = None
    for point in sorted(points, key=lambda point: point.rate_rps):
        if not point.judged.keeps(slo_attainment):
            break
        best = point.rate_rps
    return best


def first_not_good(points: list[OpenPoint], slo_attainment: float) -> OpenPoint | None:
    """Return the lowest rate that does not, or of which it is unknown whether it does."""
    in_order = sorted(points, key=lambda point: point.rate_rps)
    return next((point for point in in_order if not point.judged.keeps(slo_attainment)), None)
