"""Records every step, so that each token's time can be told afterwards; off unless asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bellman.engines.simulated.segment import Segment
    from bellman.engines.simulated.sequence import Sequence


@dataclass(frozen=True)
class LoggedSegment:
    """Consecutive steps of one batch."""

    start_s: float
    step_ends_s: tuple[float, ...]
    joules: float
    prefill_tokens: int
    sequences: int
    """Decoding ones: each gets one token at each end."""
    kv_tokens: int
    """Context of the decoding ones in the first step."""


class StepLog:
    """The steps of one run; memory grows with steps."""

    def __init__(self) -> None:
        self.segments: list[LoggedSegment] = []
        self.gaps_s: list[float] = []
        """Inter-token latencies across a preemption."""
        self._preempted_s: dict[Sequence, float] = {}

    def append(self, segment: Segment, kv_tokens: int) -> None:
        """Add a segment that has ended."""
        seconds = segment.cost.seconds
        ends_s = tuple(segment.start_s + seconds(k) for k in range(1, segment.steps + 1))
        self.segments.append(
            LoggedSegment(
                segment.start_s,
                ends_s,
                segment.cost.joules(segment.steps),
                sum(chunk for _, chunk in segment.chunks),
                segment.sequences,
                kv_tokens,
            )
        )

    def join(self, sequence: Sequence, step: int, time_s: float) -> None:
        """Note that a prefill ended with step number `step` (from 1) at `time_s`."""
        sequence.joins.append((step, sequence.generated))
        if sequence in self._preempted_s:
            self.gaps_s.append(time_s - self._preempted_s.pop(sequence))

    def leave(self, sequence: Sequence, time_s: float) -> None:
        """Note that a sequence is preempted; if it was decoding, its last token came now."""
        if sequence.finish_step >= 0:
            self._preempted_s[sequence] = time_s

    def step_ends_s(self) -> NDArray[np.float64]:
        """Return the end of every step."""
        return np.array([end_s for segment in self.segments for end_s in segment.step_ends_s])

    def token_times_s(self, sequence: Sequence) -> list[float]:
        """Return the time of each output token of a finished sequence."""
        ends_s = self.step_ends_s()
        times_s: list[float] = []
        last = len(sequence.joins) - 1
        for index, (step, before) in enumerate(sequence.joins):
            until = sequence.generated if index == last else sequence.joins[index + 1][1]
            times_s.extend(ends_s[step - 1 : step - 1 + until - before].tolist())
        return times_s

    def inter_token_latencies_s(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return latencies and how many tokens had each; exact, every token counts once."""
        values: list[float] = list(self.gaps_s)
        weights: list[int] = [1] * len(self.gaps_s)
        for segment in self.segments:
            before_s = segment.start_s
            for end_s in segment.step_ends_s:
                values.append(end_s - before_s)
                weights.append(segment.sequences)
                before_s = end_s
        return np.array(values), np.array(weights, dtype=np.float64)


def weighted_percentile(
    values: NDArray[np.float64], weights: NDArray[np.float64], percent: float
) -> float:
    """Return the smallest value with at least `percent` of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    index = np.searchsorted(cumulative, percent / 100 * cumulative[-1] * (1 - 1e-12))
    return float(values[order][min(int(index), len(values) - 1)])
