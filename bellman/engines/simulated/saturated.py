"""A saturated run: many requests at once, looked at while the batch is full.

The protocol of the ML.ENERGY benchmark (arXiv 2505.06371): all N requests are sent at time 0 to a
server with a batch of at most B; throughput and power are taken between the moment when B requests
have their first token and the moment when N - B - 1 are finished; inter-token latencies are of the
whole run.
"""

from bisect import bisect_right
from collections.abc import Sequence as Items
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellman.engines.simulated.performance import Performance
from bellman.engines.simulated.scheduler import Scheduler
from bellman.engines.simulated.segment import Limits
from bellman.engines.simulated.sequence import Sequence
from bellman.engines.simulated.stalls import NO_STALLS, Stalls
from bellman.engines.simulated.step_log import StepLog, weighted_percentile

Vector = NDArray[np.float64]
Lengths = NDArray[np.int64]


@dataclass(frozen=True)
class Work:
    """What the steps of the measured window did, by segment: enough to fit energy coefficients."""

    seconds: Vector
    steps: Vector
    prefill_tokens: Vector
    sequence_steps: Vector
    """Decoding sequences, summed over steps: the tokens that decode brought."""
    kv_token_steps: Vector
    """Context lengths, summed over decoding sequences and steps."""


@dataclass(frozen=True)
class SaturatedRun:
    """What the benchmark reports."""

    batch: float
    """Mean decoding sequences in the window."""
    itl_median_ms: float
    itl_p90_ms: float
    itl_p99_ms: float
    output_tokens_per_s: float
    watts: float
    joules_per_token: float
    preemptions: int
    work: Work


def run_saturated(
    performance: Performance,
    limits: Limits,
    prompt_tokens: Items[int],
    output_tokens: Items[int],
    stalls: Stalls = NO_STALLS,
) -> SaturatedRun:
    """Run the protocol; there must be at least 2 x `limits.max_num_seqs` requests."""
    log = StepLog()
    finished: list[Sequence] = []
    scheduler = Scheduler(limits, performance, finished.append, log=log)
    sequences = [
        Sequence(int(prompt), int(output), int(output))
        for prompt, output in zip(prompt_tokens, output_tokens, strict=True)
    ]
    for sequence in sequences:
        scheduler.add(sequence, 0.0)
    while scheduler.next_event_s is not None:
        scheduler.advance(scheduler.next_event_s)
        scheduler.start()
    first_tokens_s = np.sort([sequence.first_token_s for sequence in sequences])
    begin_s = float(first_tokens_s[limits.max_num_seqs - 1])
    end_s = finished[len(sequences) - limits.max_num_seqs - 2].last_token_s
    work, joules = window(log, begin_s, end_s)
    seconds = float(work.seconds.sum())
    first_tokens = np.count_nonzero((first_tokens_s > begin_s) & (first_tokens_s <= end_s))
    tokens = float(work.sequence_steps.sum()) + float(first_tokens)
    latencies_s, weights = stalls.spread(*log.inter_token_latencies_s())
    sequence_seconds = float((work.sequence_steps / work.steps * work.seconds).sum())
    return SaturatedRun(
        batch=sequence_seconds / seconds,
        itl_median_ms=1e3 * weighted_percentile(latencies_s, weights, 50),
        itl_p90_ms=1e3 * weighted_percentile(latencies_s, weights, 90),
        itl_p99_ms=1e3 * weighted_percentile(latencies_s, weights, 99),
        output_tokens_per_s=tokens / seconds,
        watts=joules / seconds,
        joules_per_token=joules / tokens,
        preemptions=sum(sequence.preemptions for sequence in sequences),
        work=work,
    )


def window(log: StepLog, begin_s: float, end_s: float) -> tuple[Work, float]:
    """Return the work of the steps that end in (begin, end], and their joules."""
    parts: list[tuple[float, ...]] = []
    joules = 0.0
    for segment in log.segments:
        ends_s = segment.step_ends_s
        first, last = bisect_right(ends_s, begin_s), bisect_right(ends_s, end_s)
        steps = last - first
        if steps == 0:
            continue
        start_s = segment.start_s if first == 0 else ends_s[first - 1]
        kv_tokens = segment.kv_tokens + segment.sequences * 0.5 * (first + last - 1)
        parts.append(
            (
                ends_s[last - 1] - start_s,
                steps,
                segment.prefill_tokens,
                steps * segment.sequences,
                steps * kv_tokens,
            )
        )
        joules += segment.joules * steps / len(ends_s)
    return Work(*np.array(parts, dtype=np.float64).T), joules


def gamma_lengths(mean_tokens: float, variation: float, count: int, seed: int) -> Lengths:
    """Draw gamma-distributed lengths with exactly this mean (before rounding), each at least 1.

    `variation` is their standard deviation / mean.
    """
    shape = variation**-2
    return with_mean(mean_tokens, np.random.default_rng(seed).gamma(shape, 1 / shape, count))


def lognormal_lengths(mean_tokens: float, variation: float, count: int, seed: int) -> Lengths:
    """Draw lognormal lengths, as `gamma_lengths` does: many short ones and a few very long."""
    deviation = np.sqrt(np.log1p(variation**2))
    return with_mean(mean_tokens, np.exp(np.random.default_rng(seed).normal(0, deviation, count)))


def with_mean(mean_tokens: float, lengths: Vector) -> Lengths:
    """Return the lengths stretched to this mean, as tokens."""
    rounded = np.round(mean_tokens * lengths / lengths.mean()).astype(np.int64)
    tokens: Lengths = np.maximum(rounded, 1)
    return tokens
