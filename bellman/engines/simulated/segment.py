"""Steps of one batch, and what a batch may be."""

from bisect import bisect_right
from dataclasses import dataclass

from bellman.engines.simulated.performance import Steps
from bellman.engines.simulated.sequence import Sequence


@dataclass(frozen=True)
class Limits:
    """What the scheduler must respect; vLLM's names."""

    max_num_seqs: int
    """Sequences in the batch."""
    max_num_batched_tokens: int
    """Tokens a step."""
    kv_blocks: int
    """Blocks of the KV cache."""
    block_size: int
    """Tokens a block."""


@dataclass(slots=True)
class Peak:
    """The most that any step had to do."""

    sequences: int = 0
    kv_tokens: int = 0
    prefill_tokens: int = 0

    def add(self, sequences: int, kv_tokens: int, prefill_tokens: int) -> None:
        """Take the composition of a step in."""
        self.sequences = max(self.sequences, sequences)
        self.kv_tokens = max(self.kv_tokens, kv_tokens)
        self.prefill_tokens = max(self.prefill_tokens, prefill_tokens)


@dataclass(slots=True)
class Segment:
    """Steps of one batch: a single step if it has prefill, else a run of decode steps."""

    start_s: float
    end_s: float
    steps: int
    cost: Steps
    sequences: int
    """Decoding ones."""
    chunks: list[tuple[Sequence, int]]
    """Prefill tokens by sequence."""
    more_blocks: int
    """Blocks that the steps after the first take."""

    def steps_done(self, time_s: float) -> int:
        """Return how many of its steps have ended by `time_s`, which is before its end."""
        steps = range(1, self.steps)
        return bisect_right(steps, time_s - self.start_s, key=self.cost.seconds)

    def joules_until(self, time_s: float) -> float:
        """Return its energy until `time_s`, before its end; a step's is spread evenly over it."""
        done = self.steps_done(time_s)
        before_s, after_s = self.cost.seconds(done), self.cost.seconds(done + 1)
        before_j, after_j = self.cost.joules(done), self.cost.joules(done + 1)
        share = max(0.0, time_s - self.start_s - before_s) / (after_s - before_s)
        return before_j + min(1.0, share) * (after_j - before_j)
