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
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bellman.errors import RunError
from bellman.load.processes import PROCESSES
from bellman.load.traces.workload import Workload

PROMPT, OUTPUT = "input_tokens", "output_tokens"
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
    with path.open(newline="") as file:
        for number, fields in enumerate(csv.reader(file), start=1):
            try:
                at_s, rate_rps, _, name, shape, _ = fields
                rows.append((float(at_s), float(rate_rps), name.lower(), float(shape)))
            except ValueError:
                raise RunError(
                    f"{path}:{number}: expected start, rate, cv, distribution, shape, scale; "
                    f"got {','.join(fields)[:80]}"
                ) from None
            if rows[-1][1] > 0 and (rows[-1][2] not in PROCESSES or rows[-1][3] <= 0):
                raise RunError(
                    f"{path}:{number}: distribution {name!r} of shape {shape}, "
                    f"known are {', '.join(PROCESSES)} of shape > 0"
                )
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
                values = np.array(sorted(value for value in shares if value > 0), dtype=np.int32)
                if len(values):
                    tokens[name] = (values, np.cumsum([shares[int(value)] for value in values]))
            if len(tokens) == 2:
                found.append(Lengths(float(start), tokens))
    except KeyError as error:
        raise RunError(f"{path}: no field {error}, it has {', '.join(fields)}") from None
    except (OSError, ValueError, SyntaxError, AttributeError, TypeError) as error:
        raise RunError(f"{path}: not a ServeGen data set: {error}") from None
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
