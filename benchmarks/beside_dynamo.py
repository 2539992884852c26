"""The simulated engine beside NVIDIA's Dynamo mocker: the same loads, timing and limits.

    python -m venv dynamo && dynamo/bin/pip install typing_extensions
    dynamo/bin/pip install --no-deps ai-dynamo-runtime==1.6.1 ai-dynamo==1.6.1
    python benchmarks/beside_dynamo.py --python dynamo/bin/python

Both get the mocker's built-in timing function. It charges two things otherwise than ours: it takes
the mean prefill of a step as a whole number, and when a preempted request returns it charges the
prefill of its prompt and one decode step, but not the recomputation of what had been generated. The
last column repeats both in ours: then every request's times are the same.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bellman.engines.simulated.scheduler import Scheduler
from bellman.engines.simulated.segment import Limits
from bellman.engines.simulated.sequence import Sequence

Requests = list[tuple[float, int, int]]
"""Arrival (ms), prompt and output tokens."""
BLOCK = 16


@dataclass(frozen=True)
class MockerSteps:
    """Decode steps take 5.74 + 54.01 p - 25.74 p^2 ms, p the share of KV tokens in use."""

    prefill_ms: float
    sequences: int
    kv_tokens: int
    capacity: int

    def seconds(self, steps: int) -> float:
        """Return how long the first `steps` steps take."""
        if steps == 0 or self.sequences == 0:
            return 1e-3 * self.prefill_ms * (steps > 0)
        first, growth = self.kv_tokens / self.capacity, self.sequences / self.capacity
        pairs = steps * (steps - 1) / 2
        squares = (steps - 1) * steps * (2 * steps - 1) / 6
        shares = steps * first + growth * pairs
        share_squares = steps * first**2 + 2 * first * growth * pairs + growth**2 * squares
        return 1e-3 * (self.prefill_ms + 5.74 * steps + 54.01 * shares - 25.74 * share_squares)

    def joules(self, steps: int) -> float:
        """Return nothing: the mocker has no energy."""
        return 0.0


class MockerTiming:
    """The built-in timing: a prefill of T tokens adds 16.50142 + 0.01518344 T + 4.209989e-7 T^2."""

    idle_w = 0.0

    def __init__(self, capacity: int, their_charges: bool) -> None:
        self._capacity = capacity
        self._their_charges = their_charges
        self.chunks: list[tuple[Sequence, int]] = []

    def steps(
        self, prefill_tokens: int, prefill_pairs: int, sequences: int, kv_tokens: int
    ) -> MockerSteps:
        """Return the cost of a step."""
        tokens = prefill_tokens
        if self._their_charges and self.chunks:
            ends = computed = 0
            for sequence, chunk in self.chunks:
                end = sequence.computed + chunk
                computed += sequence.computed
                ends += min(end, max(sequence.computed, sequence.prompt_tokens))
                if sequence.generated and end == sequence.known_tokens:
                    sequences += 1
                    kv_tokens += end
            tokens = len(self.chunks) * (ends // len(self.chunks) - computed // len(self.chunks))
        time_ms = 4.209989e-07 * tokens**2 + 1.518344e-02 * tokens + 1.650142e01
        return MockerSteps(time_ms if prefill_tokens else 0.0, sequences, kv_tokens, self._capacity)


class WatchedScheduler(Scheduler):
    """Tells the timing what the step is made of."""

    def _schedule(self) -> tuple[list[tuple[Sequence, int]], bool]:
        chunks, preempted = super()._schedule()
        assert isinstance(self._performance, MockerTiming)
        self._performance.chunks = chunks
        return chunks, preempted


@dataclass(frozen=True)
class Outcome:
    """Times of all requests (ms) and what they cost to simulate."""

    first_ms: NDArray[np.float64]
    last_ms: NDArray[np.float64]
    preemptions: int
    wall_s: float
    processor_s: float
    """All threads together."""


def ours(requests: Requests, limits: Limits, their_charges: bool) -> Outcome:
    """Run the simulated engine's core."""
    timing = MockerTiming(limits.kv_blocks * BLOCK, their_charges)
    finished: list[Sequence] = []
    start_s, start_processor_s = time.perf_counter(), time.process_time()
    kind = WatchedScheduler if their_charges else Scheduler
    scheduler = kind(limits, timing, finished.append)
    sequences = [Sequence(prompt, output, output) for _, prompt, output in requests]
    for (arrival_ms, _, _), sequence in zip(requests, sequences, strict=True):
        scheduler.add(sequence, 1e-3 * arrival_ms)
    while scheduler.next_event_s is not None:
        scheduler.advance(scheduler.next_event_s)
        scheduler.start()
    wall_s = time.perf_counter() - start_s
    processor_s = time.process_time() - start_processor_s
    return Outcome(
        1e3 * np.array([sequence.first_token_s for sequence in sequences]),
        1e3 * np.array([sequence.last_token_s for sequence in sequences]),
        sum(sequence.preemptions for sequence in sequences),
        wall_s,
        processor_s,
    )


def theirs(python: str, requests: Requests, limits: Limits, per_request: bool = True) -> Outcome:
    """Run the mocker in its own environment."""
    engine = {
        "num_gpu_blocks": limits.kv_blocks,
        "max_num_seqs": limits.max_num_seqs,
        "max_num_batched_tokens": limits.max_num_batched_tokens,
        "enable_prefix_caching": False,
    }
    job = {"engine": engine, "requests": requests, "per_request": per_request}
    done = subprocess.run(
        [python, str(Path(__file__).with_name("dynamo_replay.py"))],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    rows = answer["requests"]
    return Outcome(
        np.array([row["first_token_ms"] for row in rows]),
        np.array([row["last_token_ms"] for row in rows]),
        sum(row["readmissions"] for row in rows),
        answer["wall_s"],
        answer["processor_s"],
    )


def load(count: int, rate_rps: float, most: tuple[int, int], seed: int = 0) -> Requests:
    """Draw Poisson arrivals, the first at 0, with uniform lengths up to `most`."""
    random = np.random.default_rng(seed)
    gaps_ms = random.exponential(1e3 / rate_rps, count)
    arrivals_ms = np.round(np.cumsum(gaps_ms) - gaps_ms[0], 3)
    prompts = random.integers(50, most[0], count)
    outputs = random.integers(5, most[1], count)
    return list(zip(arrivals_ms.tolist(), prompts.tolist(), outputs.tolist(), strict=True))


Draw = Callable[[int], Requests]
ROOMY, TIGHT = Limits(256, 8192, 28_000, BLOCK), Limits(256, 8192, 2_000, BLOCK)
CASES: tuple[tuple[str, Draw, Limits], ...] = (
    ("below saturation", lambda count: load(count, 8, (3000, 300)), ROOMY),
    ("at saturation", lambda count: load(count, 14, (3000, 300)), ROOMY),
    ("above saturation", lambda count: load(count, 40, (3000, 300)), ROOMY),
    ("out of KV", lambda count: load(count, 30, (1000, 600)), TIGHT),
)
"""Loads by their number of requests, and limits."""


def main() -> None:
    """Compare times below, at and above saturation and out of KV; then speed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", required=True, help="interpreter that has ai-dynamo")
    parser.add_argument("--requests", type=int, default=1000)
    options = parser.parse_args()
    cases = [(name, draw(options.requests), limits) for name, draw, limits in CASES]
    table = Table(title="the same loads: ours / Dynamo's mocker", title_justify="left")
    columns = ("load", "requests/s", "TTFT p50 s", "TTFT p99 s", "E2E p50 s", "E2E p99 s")
    for name in (*columns, "preempted", "largest difference s", "with its charges s"):
        table.add_column(name, justify="left" if name == "load" else "right")
    for name, requests, limits in cases:
        arrivals_ms = np.array([arrival for arrival, _, _ in requests])
        mine, other = ours(requests, limits, False), theirs(options.python, requests, limits)
        charged = ours(requests, limits, True)
        cells = [
            f"{1e3 * len(requests) / mine.last_ms.max():.2f} / "
            f"{1e3 * len(requests) / other.last_ms.max():.2f}"
        ]
        for field in ("first_ms", "last_ms"):
            for percent in (50, 99):
                both = [
                    1e-3 * float(np.percentile(getattr(run, field) - arrivals_ms, percent))
                    for run in (mine, other)
                ]
                cells.append(f"{both[0]:.3f} / {both[1]:.3f}")
        cells.append(f"{mine.preemptions} / {other.preemptions}")
        for run in (mine, charged):
            cells.append(f"{1e-3 * float(np.abs(run.last_ms - other.last_ms).max()):.6f}")
        table.add_row(name, *cells)
    console = Console()
    console.print(table)
    speed = Table(title="simulated requests per second of wall time", title_justify="left")
    for name in ("load", "ours", "Dynamo's mocker", "ratio"):
        speed.add_column(name, justify="left" if name == "load" else "right")
    for name, requests, limits in cases:
        mine = ours(requests, limits, False)
        other = theirs(options.python, requests, limits, per_request=False)
        speeds = [len(requests) / run.wall_s for run in (mine, other)]
        speed.add_row(
            name, f"{speeds[0]:,.0f}", f"{speeds[1]:,.0f}", f"{speeds[0] / speeds[1]:.1f}"
        )
    console.print(speed)


if __name__ == "__main__":
    main()
