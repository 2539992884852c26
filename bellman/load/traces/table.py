"""Reads a trace with one row a request: Azure, BurstGPT, Mooncake, or columns of your own."""

from array import array
from collections import Counter
from functools import lru_cache
from pathlib import Path

import numpy as np

from bellman.errors import RunError
from bellman.load.traces.files import read_rows
from bellman.load.traces.values import parse_time_s, parse_tokens
from bellman.load.traces.workload import Workload


@lru_cache(maxsize=1)  # each repeat asks for the same trace, and the large ones take a minute
def read_table(
    path: Path,
    time_column: str,
    time_unit: str,
    prompt_column: str | None,
    output_column: str | None,
) -> Workload:
    """Read a whole trace; time 0 is its earliest row. Rows may come in any order.

    A row of 0 output tokens is a request that failed where the trace was recorded (BurstGPT), one
    of 0 prompt tokens asks nothing: both are left out and counted. Every other value that is not
    a time or a whole number of tokens raises `RunError` with file, line, column and value.
    """
    columns = [column for column in (time_column, prompt_column, output_column) if column]
    times, lengths = array("d"), [array("l"), array("l")]
    token_columns = [
        (name, lengths[index], f"{kind} tokens 0")
        for index, (name, kind) in enumerate([(prompt_column, "prompt"), (output_column, "output")])
        if name
    ]
    left_out: Counter[str] = Counter()
    for place, values in read_rows(path, columns):
        time_s = _parse(place, time_column, values[0], time_unit)
        tokens = [
            _parse(place, name, value)
            for (name, _, _), value in zip(token_columns, values[1:], strict=True)
        ]
        if 0 in tokens:
            left_out[token_columns[tokens.index(0)][2]] += 1
            continue
        times.append(time_s)
        for (_, column, _), count in zip(token_columns, tokens, strict=True):
            column.append(int(count))
    if len(times) < 2:
        raise RunError(f"{path}: {len(times)} requests, a trace needs 2 or more")
    order = np.argsort(np.asarray(times), kind="stable")
    times_s = np.asarray(times)[order]
    times_s = times_s - times_s[0]
    if times_s[-1] == 0:
        raise RunError(f"{path}: all requests are at the same instant, check arrivals.time_column")
    prompt_tokens, output_tokens = (
        np.asarray(column, dtype=np.int32)[order] if name else None
        for name, column in zip((prompt_column, output_column), lengths, strict=True)
    )
    # The last request owns a mean gap, so that rate x duration is the number of requests.
    duration_s = float(times_s[-1]) * len(times_s) / (len(times_s) - 1)
    return Workload(times_s, prompt_tokens, output_tokens, duration_s, dict(left_out))


def _parse(place: str, column: str, value: object, time_unit: str | None = None) -> float:
    try:
        return parse_time_s(value, time_unit) if time_unit else parse_tokens(value)
    except (ValueError, TypeError, OverflowError):
        what = f"a time in {time_unit}" if time_unit else "a whole number of tokens, 0 or more"
        raise RunError(f"{place}: {column}={value!r} is not {what}") from None


def cut_window(workload: Workload, start_s: float, duration_s: float | None) -> Workload:
    """Return the part of a workload in [start_s, start_s + duration_s), moved to time 0."""
    if start_s == 0 and duration_s is None:
        return workload
    end_s = workload.duration_s if duration_s is None else start_s + duration_s
    first, last = np.searchsorted(workload.times_s, [start_s, end_s])
    if last - first < 1:
        raise RunError(
            f"the trace has no request from {start_s} s to {end_s} s, it lasts "
            f"{workload.duration_s:.1f} s: set arrivals.start_s and arrivals.length_s"
        )
    prompt_tokens, output_tokens = (
        None if tokens is None else tokens[first:last]
        for tokens in (workload.prompt_tokens, workload.output_tokens)
    )
    return Workload(
        workload.times_s[first:last] - start_s,
        prompt_tokens,
        output_tokens,
        end_s - start_s,
        workload.left_out,
    )
