"""ServeGen's clients (arXiv 2505.09999): rates, gap distributions and lengths of each over time.

A folder holds two files a client: `chunk-N-trace.csv` with a row (start in s, requests per second,
coefficient of variation, distribution of the gaps, its shape, its scale) for every ten minutes, and
`chunk-N-dataset.json` with the distributions of prompt and output tokens for every six hours.
"""

import ast
import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bellman.errors import RunError
from bellman.load.processes import PROCESSES
from bellman.load.traces.workload import Workload
from bellman.row_files.text import read_lines, shown

PROMPT, OUTPUT = "input_tokens", "output_tokens"
NOT_LENGTHS = (
    *(OSError, ValueError, SyntaxError, AttributeError, TypeError),
    *(OverflowError, RecursionError, MemoryError),
)
"""What reading a file that is something else can raise, with too long numbers and deep brackets."""
LAST_WINDOW_S = 600.0
"""Length of the last window, whose end no row gives."""


@dataclass(frozen=True)
class Window:
    """A stretch of a client's trace in which it sends at one rate."""

    start_s: float
    end_s: float
    rate_rps: float
    process: str
    shape: float

    @property
    def expected(self) -> float:
        """Expected number of requests."""
        return self.rate_rps * (self.end_s - self.start_s)


def read_windows(path: Path, start_s: float, end_s: float) -> list[Window]:
    """Read the windows of one client that overlap [start_s, end_s), cut to it."""
    rows: list[tuple[float, float, str, float]] = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            at_s, rate_rps, _, name, shape, _ = next(csv.reader([line]))
            row = (float(at_s), float(rate_rps), name.strip().lower(), float(shape))
            if not all(map(isfinite, (row[0], row[1], row[3]))) or row[1] < 0:
                raise ValueError
        except (ValueError, csv.Error):
            raise RunError(
                f"{path}:{number}: expected start, rate, cv, distribution, shape, scale; "
                f"got {shown(line)}"
            ) from None
        if row[1] > 0 and (row[2] not in PROCESSES or row[3] <= 0):
            raise RunError(
                f"{path}:{number}: distribution {shown(name)!r} of shape {shape}, "
                f"known are {', '.join(PROCESSES)} of shape > 0"
            )
        if rows and row[0] <= rows[-1][0]:
            raise RunError(f"{path}:{number}: start {at_s} is not after the row's before it")
        rows.append(row)
    starts = [row[0] for row in rows]
    ends = [*starts[1:], starts[-1] + LAST_WINDOW_S] if starts else []
    return [
        Window(max(low, start_s), min(high, end_s), rate_rps, process, shape)
        for (low, rate_rps, process, shape), high in zip(rows, ends, strict=True)
        if rate_rps > 0 and low < end_s and high > start_s
    ]


@dataclass(frozen=True)
class Lengths:
    """Distributions of prompt and output tokens from `start_s` on."""

    start_s: float
    tokens: dict[str, tuple[NDArray[np.int32], NDArray[np.float64]]]
    """Values and cumulated probabilities by name."""

    def draw(self, name: str, count: int, generator: np.random.Generator) -> NDArray[np.int32]:
        """Draw `count` lengths."""
        values, cumulated = self.tokens[name]
        at = np.searchsorted(cumulated, generator.uniform(size=count) * cumulated[-1], "right")
        drawn: NDArray[np.int32] = values[np.minimum(at, len(values) - 1)]
        return drawn


def read_lengths(path: Path) -> list[Lengths]:
    """Read the length distributions of one client, in order; empty ones are left out."""
    try:
        content = json.loads(path.read_text())
        found = []
        for start, fields in content.items():
            tokens = {}
            for name in (PROMPT, OUTPUT):
                shares = {int(k): float(v) for k, v in ast.literal_eval(fields[name]).items()}
                if not all(isfinite(share) and share >= 0 for share in shares.values()):
                    raise ValueError(f"{name} at {start} has shares that are no probabilities")
                values = np.array(
                    sorted(value for value, share in shares.items() if value > 0 and share > 0),
                    dtype=np.int32,
                )
                if len(values):
                    tokens[name] = (values, np.cumsum([shares[int(value)] for value in values]))
            if len(tokens) == 2:
                found.append(Lengths(float(start), tokens))
    except KeyError as error:
        raise RunError(f"{path}: no field {error}, it has {shown(', '.join(fields))}") from None
    except NOT_LENGTHS as error:
        raise RunError(f"{path}: not a ServeGen data set: {shown(str(error))}") from None
    return sorted(found, key=lambda lengths: lengths.start_s)


def lengths_at(lengths: Sequence[Lengths], time_s: float) -> Lengths | None:
    """Return the last distribution that starts at or before `time_s`."""
    return next((item for item in reversed(lengths) if item.start_s <= time_s), None)


def draw_workload(
    folder: Path,
    start_s: float,
    length_s: float,
    clients: int | None,
    generator: np.random.Generator,
) -> Workload:
    """Draw the requests of the `clients` busiest clients of a window (None: of all).

    Each client is a renewal process of its own, restarted in every window of its trace. Prompt and
    output lengths are drawn independently, because the data gives each one's distribution only.
    """
    end_s = start_s + length_s
    if folder.is_file():
        raise RunError(f"{folder}: a file; set arrivals.path to a folder of ServeGen's")
    paths = sorted(folder.glob("chunk-*-trace.csv"))
    if not paths:
        raise RunError(f"{folder}: no chunk-*-trace.csv of ServeGen, set arrivals.path")
    by_client = [(path, read_windows(path, start_s, end_s)) for path in paths]
    by_client.sort(key=lambda item: (-sum(w.expected for w in item[1]), item[0].name))
    left_out: Counter[str] = Counter()
    times, prompts, outputs = [], [], []
    for path, windows in by_client[:clients]:
        if not windows:
            continue
        lengths = read_lengths(path.with_name(path.name.replace("-trace.csv", "-dataset.json")))
        for window in windows:
            unit = PROCESSES[window.process](window.expected, window.shape, generator)
            distribution = lengths_at(lengths, window.start_s)
            if distribution is None:
                left_out["no lengths in the data set"] += len(unit)
                continue
            times.append(window.start_s - start_s + unit / window.rate_rps)
            prompts.append(distribution.draw(PROMPT, len(unit), generator))
            outputs.append(distribution.draw(OUTPUT, len(unit), generator))
    if not sum(len(part) for part in times):
        raise RunError(
            f"{folder}: no request from {start_s} s to {end_s} s, "
            "set arrivals.start_s and arrivals.length_s"
        )
    all_times = np.concatenate(times)
    order = np.argsort(all_times, kind="stable")
    return Workload(
        all_times[order],
        np.concatenate(prompts)[order],
        np.concatenate(outputs)[order],
        length_s,
        dict(left_out),
    )
