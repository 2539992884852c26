"""Reads a trace with one row a request: Azure, BurstGPT, Mooncake, or columns of your own."""

from array import array
from collections import Counter
from collections.abc import Callable, MutableSequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellman.errors import RunError
from bellman.load.traces.values import parse_hash_ids, parse_priority, parse_time_s, parse_tokens
from bellman.load.traces.workload import Workload
from bellman.row_files.read import read_rows
from bellman.row_files.text import shown

A_LENGTH = "a whole number of tokens, 0 or more, below 2**31"
HASH_IDS = "a list of whole numbers, 0 or more"
LONGEST_S = 1e12
"""Of a trace: beyond it a second is lost among a time's digits."""
A_PRIORITY = "a whole number of 32 bits"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a trace: its name in the file (None: not there), how it is read, its values."""

    name: str | None
    parse: Callable[[Any], Any]
    expected: str
    values: MutableSequence[Any]

    def integers(self, order: NDArray[np.intp]) -> NDArray[np.int32] | None:
        """Return the values in `order`; None where the trace has none."""
        return np.asarray(self.values, dtype=np.int32)[order] if self.name else None


@lru_cache(maxsize=1)  # each repeat asks for the same trace, and the large ones take a minute
def read_table(
    path: Path,
    time_column: str,
    time_unit: str,
    *,
    prompt_column: str | None,
    output_column: str | None,
    hash_ids_column: str | None,
    priority_column: str | None,
) -> Workload:
    """Read a whole trace; time 0 is its earliest row. Rows may come in any order.

    A row of 0 output tokens is a request that failed where the trace was recorded (BurstGPT), one
    of 0 prompt tokens asks nothing: both are left out and counted. Every other value that is not
    what its column has to hold raises `RunError` with file, line, column and value.
    """
    parse_time = partial(parse_time_s, unit=time_unit)
    time = Column(time_column, parse_time, f"a time in {time_unit}", array("d"))
    prompt = Column(prompt_column, parse_tokens, A_LENGTH, array("l"))
    output = Column(output_column, parse_tokens, A_LENGTH, array("l"))
    hash_ids = Column(hash_ids_column, parse_hash_ids, HASH_IDS, [])
    priority = Column(priority_column, parse_priority, A_PRIORITY, array("l"))
    columns = [column for column in (time, prompt, output, hash_ids, priority) if column.name]
    lengths = [kind for kind, name in (("prompt", prompt.name), ("output", output.name)) if name]
    left_out: Counter[str] = Counter()
    appends = [column.values.append for column in columns]
    for place, values in read_rows(path, [str(column.name) for column in columns], "arrivals.path"):
        row: list[Any] = []
        try:
            for column, value in zip(columns, values, strict=True):
                row.append(column.parse(value))
        except (ValueError, TypeError, ArithmeticError, RecursionError):
            text = f"{place}: {column.name}={shown(repr(value))} is not {column.expected}"
            raise RunError(text) from None
        tokens = row[1 : 1 + len(lengths)]
        if 0 in tokens:
            left_out[f"{lengths[tokens.index(0)]} tokens 0"] += 1
            continue
        for append, value in zip(appends, row, strict=True):
            append(value)
    times = np.asarray(time.values)
    if len(times) < 2:
        raise RunError(f"{path}: {len(times)} requests, a trace needs 2 or more")
    order = np.argsort(times, kind="stable")
    times_s = times[order]
    if not float(times_s[-1]) - float(times_s[0]) < LONGEST_S:
        raise RunError(
            f"{path}: the times span more than {LONGEST_S:g} s, check arrivals.time_unit"
        )
    times_s = times_s - times_s[0]
    if times_s[-1] == 0:
        raise RunError(f"{path}: all requests are at the same instant, check arrivals.time_column")
    return Workload(
        times_s,
        prompt.integers(order),
        output.integers(order),
        # The last request owns a mean gap, so that rate x duration is the number of requests.
        float(times_s[-1]) * len(times_s) / (len(times_s) - 1),
        dict(left_out),
        [hash_ids.values[index] for index in order] if hash_ids.name else None,
        priority.integers(order),
    )


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
    prompt_tokens, output_tokens, priorities = (
        None if column is None else column[first:last]
        for column in (workload.prompt_tokens, workload.output_tokens, workload.priorities)
    )
    return Workload(
        workload.times_s[first:last] - start_s,
        prompt_tokens,
        output_tokens,
        end_s - start_s,
        workload.left_out,
        None if workload.hash_ids is None else workload.hash_ids[first:last],
        priorities,
    )
