"""The metrics, one function each: unit and formula in its docstring.

`requests` is a frame of `analysis.frames.derive`: the intended requests of one arm in one part of
the schedule, whatever became of them. None means that nothing was there to measure, or that the
value would depend on requests of which it is unknown: a mean or a sum over the others would be of
something else.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pandas as pd

from bellman.load.schedule import Phase

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def percentile(values: Array, percent: float) -> float | None:
    """Return the nearest-rank percentile: the smallest value with `percent` % at or below it.

    Exact: rank = ceil(percent / 100 x n) in whole numbers, and the answer is one of the values.
    Failures enter as +inf, so nine requests of 0.1 s and one failure have p90 = 0.1 and p95 = inf.
    """
    return percentiles(values, (percent,))[0]


def is_ok(requests: pd.DataFrame) -> Mask:
    """Return for each request whether it ended ok."""
    return requests["ok"].to_numpy(dtype=bool)


def applies(requests: pd.DataFrame, column: str) -> Mask:
    """Return for each request whether the quantity has a meaning: tpot has none for one token."""
    if column == "tpot_s":
        return ~(requests["output_tokens"] <= 1).to_numpy(dtype=bool)
    return np.ones(len(requests), dtype=bool)


def unknown(requests: pd.DataFrame, column: str) -> Mask:
    """Return for each request whether it ended ok and has the quantity, which nobody recorded."""
    unrecorded = requests[column].isna().to_numpy()
    if not unrecorded.any():
        return unrecorded
    return unrecorded & is_ok(requests) & applies(requests, column)


def of_ok(requests: pd.DataFrame, column: str) -> pd.Series:
    """Return a column of the ok requests that it applies to; none where it is unknown of any."""
    if unknown(requests, column).any():
        return requests[column].iloc[:0]
    return requests[column][is_ok(requests) & applies(requests, column)]


def failures_as_infinity(requests: pd.DataFrame, column: str) -> Array:
    """Return a latency column in s over all intended requests, +inf for every one not ok.

    Requests that the quantity does not apply to are left out; NaN is unknown.
    """
    ok = is_ok(requests)
    values = np.where(ok, requests[column].to_numpy(dtype=np.float64), np.inf)
    counted: Array = values[~ok | applies(requests, column)]
    return counted


def percentiles(values: Array, percents: Sequence[float]) -> list[float | None]:
    """Return several percentiles; each is that of `percentile`."""
    if len(values) == 0:
        return [None for _ in percents]
    ordered = np.sort(values)
    ranks = (max(1, math.ceil(Fraction(str(p)) * len(values) / 100)) for p in percents)
    return [float(ordered[rank - 1]) for rank in ranks]


def latency_percentile(requests: pd.DataFrame, column: str, percent: float) -> float | None:
    """Return a percentile of a latency, in s, over all intended requests; failures are +inf."""
    return latency_percentiles(requests, column, (percent,))[0]


def latency_percentiles(
    requests: pd.DataFrame, column: str, percents: Sequence[float]
) -> list[float | None]:
    """Return several percentiles of a latency; see `latency_percentile`."""
    if unknown(requests, column).any():
        return [None for _ in percents]
    return percentiles(failures_as_infinity(requests, column), percents)


def chunk_gap_percentiles(requests: pd.DataFrame, percents: Sequence[float]) -> list[float | None]:
    """Return percentiles of the waits between two chunks of a stream, in s, over the ok requests.

    The gaps of all streams together, so a long answer counts more; a stream that failed has none.
    A chunk may carry several tokens: this is what a reader waits, where tpot is what the engine
    needs for a token. A request without a stream has no gaps.
    """
    streams = requests.loc[requests["ok"], "chunk_gaps_s"].dropna()
    return percentiles(np.concatenate([np.zeros(0), *streams]), percents)


def latency_mean(requests: pd.DataFrame, column: str) -> float | None:
    """Return the mean of a latency, in s, over the ok requests: a mean over survivors.

    Read it beside `lost_share`, which says how many it leaves out.
    """
    return mean(requests, column)


def latency_mean_of_all(requests: pd.DataFrame, column: str) -> float | None:
    """Return the mean of a latency, in s, over all intended requests: +inf if any was lost."""
    if not len(requests):
        return None
    return math.inf if completed(requests) < len(requests) else mean(requests, column)


def latency_percentiles_of_ok(
    requests: pd.DataFrame, column: str, percents: Sequence[float]
) -> list[float | None]:
    """Return percentiles of a latency, in s, over the ok requests: of survivors, as their mean."""
    return percentiles(of_ok(requests, column).to_numpy(dtype=np.float64), percents)


def offered(requests: pd.DataFrame) -> int:
    """Return the number of intended requests."""
    return len(requests)


def offered_rate(requests: pd.DataFrame, length_s: float) -> float | None:
    """Return intended requests / length, in requests per second."""
    return len(requests) / length_s if length_s > 0 else None


def achieved_rate(requests: pd.DataFrame, length_s: float) -> float | None:
    """Return sent requests / length, in requests per second."""
    return int(requests["sent_s"].notna().sum()) / length_s if length_s > 0 else None


def completed(requests: pd.DataFrame) -> int:
    """Return the number of intended requests that ended ok, whenever they did."""
    return int(requests["ok"].sum())


def rejected(requests: pd.DataFrame) -> int:
    """Return the number of intended requests that were refused, and stayed so."""
    return int((requests["status"] == "rejected").sum())


def admitted(requests: pd.DataFrame) -> int:
    """Return the number of requests that an engine let in, whatever became of them.

    Intended = admitted + rejected + never sent; completed <= admitted.
    """
    sent = requests["sent_s"].notna()
    return int((sent & (requests["status"] != "rejected")).sum())


def retried(requests: pd.DataFrame) -> int:
    """Return the number of requests that were sent more than once, to the same engine or another.

    Without records of attempts a request was sent once.
    """
    return int((requests["attempts"] > 1).sum())


def finished_inside(requests: pd.DataFrame, start_s: float, end_s: float) -> pd.DataFrame:
    """Return the ok requests whose last token came in [start_s, end_s), whenever intended.

    Needs all requests of the arm: those sent in an earlier phase may finish here.
    """
    return requests[_is_finished_inside(requests, start_s, end_s)]


def count_finished_inside(requests: pd.DataFrame, start_s: float, end_s: float) -> int:
    """Return the number of requests of `finished_inside`."""
    return int(_is_finished_inside(requests, start_s, end_s).sum())


def _is_finished_inside(requests: pd.DataFrame, start_s: float, end_s: float) -> Mask:
    last_s = requests["last_token_s"].to_numpy(dtype=np.float64)
    return is_ok(requests) & (last_s >= start_s) & (last_s < end_s)


def throughput(requests: pd.DataFrame, start_s: float, end_s: float) -> float | None:
    """Return requests finished inside the window / its length, in requests per second."""
    length_s = end_s - start_s
    count = count_finished_inside(requests, start_s, end_s)
    return count / length_s if length_s > 0 else None


def lost_share(requests: pd.DataFrame) -> float | None:
    """Return requests that did not end ok / all intended requests."""
    return 1.0 - completed(requests) / len(requests) if len(requests) else None


def lag_percentile(requests: pd.DataFrame, percent: float) -> float | None:
    """Return a percentile of actual - intended send time, in s, over the requests sent."""
    return percentile(requests["client_wait_s"].dropna().to_numpy(dtype=np.float64), percent)


def lag_max(requests: pd.DataFrame) -> float | None:
    """Return the largest actual - intended send time, in s, over the requests sent."""
    waits = requests["client_wait_s"].dropna()
    return float(waits.max()) if len(waits) else None


def total(requests: pd.DataFrame, column: str) -> int | None:
    """Return the sum of a count (tokens, words) over the ok requests."""
    values = of_ok(requests, column)
    return int(values.sum()) if len(values) else None


def mean(requests: pd.DataFrame, column: str) -> float | None:
    """Return the mean of a column over the ok requests, in the column's unit."""
    values = of_ok(requests, column)
    return float(values.mean()) if len(values) else None


def counted(ticks: pd.DataFrame, column: str, start_s: float, end_s: float) -> float | None:
    """Return by how much a counter of one episode's timeline rose in [start_s, end_s].

    Interpolated between the two samples around each edge; after the last sample it stands still.
    None where the counter is unknown at an edge.
    """
    if ticks.empty:
        return None
    times_s = ticks["time_s"].to_numpy(dtype=np.float64)
    totals = ticks[column].to_numpy(dtype=np.float64)
    at = np.interp([start_s, end_s], times_s, totals)
    rise = float(at[1] - at[0])
    return None if math.isnan(rise) else rise


def per(quantity: float | None, count: float | None) -> float | None:
    """Return quantity / count, None when either is unknown or there is nothing to divide by."""
    return quantity / count if quantity is not None and count else None


def span(phases: tuple[Phase, ...]) -> tuple[float, float]:
    """Return start and end, in s, of consecutive phases; (0, 0) for none."""
    return (phases[0].start_s, phases[-1].end_s) if phases else (0.0, 0.0)
