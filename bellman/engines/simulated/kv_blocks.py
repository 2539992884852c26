"""Counts KV cache blocks of running sequences, without a loop over them.

A decoding sequence takes a new block every `block_size` steps. Which step that is depends only on
its phase (context length minus completed steps) modulo the block size, so one counter for each
residue says how many blocks the next step, or the next thousand, will take.
"""

from bellman.engines.simulated.sequence import Sequence


class KvBlocks:
    """A pool of `total` blocks of `block_size` tokens (vLLM's one null block is not counted)."""

    def __init__(self, total: int, block_size: int) -> None:
        self.total = total
        self.block_size = block_size
        self.used = 0
        self.decoding = 0
        """Sequences that decode."""
        self._residues = [0] * block_size

    @property
    def free(self) -> int:
        """Blocks that nobody holds."""
        return self.total - self.used

    def blocks_for(self, tokens: int) -> int:
        """Return the blocks that hold `tokens` tokens."""
        return -(-tokens // self.block_size)

    def join(self, phase: int) -> None:
        """Count a sequence that begins to decode."""
        self._residues[(phase - 1) % self.block_size] += 1
        self.decoding += 1

    def leave(self, phase: int) -> None:
        """Forget a sequence that decodes no more."""
        self._residues[(phase - 1) % self.block_size] -= 1
        self.decoding -= 1

    def admits(self, sequence: Sequence) -> bool:
        """Say whether all known tokens of a waiting sequence fit."""
        return self.blocks_for(sequence.known_tokens) <= self.total - self.used

    def take(self, count: int) -> None:
        """Take free blocks."""
        self.used += count

    def blocks_for_chunk(self, sequence: Sequence, chunk: int) -> int:
        """Return the blocks that a prefill chunk takes beyond those its sequence has."""
        computed = sequence.computed
        return self.blocks_for(computed + chunk) - self.blocks_for(computed)

    def take_chunk(self, sequence: Sequence, chunk: int) -> None:
        """Take the blocks of a prefill chunk."""
        self.take(self.blocks_for_chunk(sequence, chunk))

    def release(self, sequence: Sequence, tokens: int) -> None:
        """Free the blocks of a sequence that holds `tokens` tokens."""
        self.used -= self.blocks_for(tokens)

    def preempt(self, sequence: Sequence, tokens: int) -> None:
        """Free the blocks of a sequence that will come back."""
        self.release(sequence, tokens)

    def growth_of_one(self, step: int) -> int:
        """Return the blocks that decode step number `step` takes."""
        return self._residues[-step % self.block_size]

    def growth(self, step: int, steps: int) -> int:
        """Return the blocks that `steps` decode steps from number `step` on take together."""
        cycles, rest = divmod(steps, self.block_size)
        blocks = cycles * self.decoding
        size, residues = self.block_size, self._residues
        for number in range(step, step + rest):
            blocks += residues[-number % size]
        return blocks

    def steps_that_fit(self, step: int, steps: int) -> tuple[int, int]:
        """Return how many of `steps` decode steps from `step` on the free blocks allow.

        The second number is the blocks that those steps take.
        """
        free = self.total - self.used
        blocks = self.growth(step, steps)
        if blocks <= free:
            return steps, blocks
        cycles = free // self.decoding
        fit, blocks = cycles * self.block_size, cycles * self.decoding
        while (more := blocks + self._residues[-(step + fit) % self.block_size]) <= free:
            fit, blocks = fit + 1, more
        return fit, blocks
