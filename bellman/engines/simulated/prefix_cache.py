"""Prefix caching: full blocks of prompts stay in the KV cache until their space is needed.

vLLM's rules. A block is known by a hash of its tokens and of all before them. A sequence that is
admitted takes the blocks of its longest known prefix as computed, whole blocks only, and never its
last token, which has to be computed for its logits. Freed blocks queue up for reuse, those of a
sequence from its last to its first; the oldest are taken first, and lose what they held then.

Left out: blocks that hold generated tokens are not found again, and a block that is computed twice
is known once.
"""

from collections import OrderedDict
from collections.abc import Hashable
from collections.abc import Sequence as Items

from bellman.engines.simulated.kv_blocks import KvBlocks
from bellman.engines.simulated.sequence import Sequence


class PrefixCachingBlocks(KvBlocks):
    """A pool that remembers what freed blocks hold."""

    def __init__(self, total: int, block_size: int) -> None:
        super().__init__(total, block_size)
        self.hit_tokens = 0
        self._references: dict[Hashable, int] = {}  # by hash; 0: held, but free for reuse
        # Free blocks, oldest first: a hash, or (run,) of that many blocks which hold nothing.
        self._free: OrderedDict[Hashable, int] = OrderedDict({(0,): total})
        self._runs = 0

    def hits(self, sequence: Sequence) -> list[Hashable]:
        """Return the blocks of a waiting sequence's longest known prefix."""
        limit = (sequence.known_tokens - 1) // self.block_size
        found: list[Hashable] = []
        for block in sequence.block_hashes[:limit]:
            if block not in self._references:
                break
            found.append(block)
        return found

    def admits(self, sequence: Sequence) -> bool:
        """Say whether all known tokens fit; if so, take the known prefix as computed."""
        hits = self.hits(sequence)
        revived = sum(self._references[block] == 0 for block in hits)
        needed = self.blocks_for(sequence.known_tokens) - len(hits) + revived
        if needed > self.free:
            return False
        for block in hits:
            if self._references[block] == 0:
                del self._free[block]
                self.used += 1
            self._references[block] += 1
        sequence.held_blocks = hits
        sequence.computed = len(hits) * self.block_size
        self.hit_tokens += sequence.computed
        return True

    def take(self, count: int) -> None:
        """Take the oldest free blocks; what they held is forgotten."""
        self.used += count
        while count > 0:
            block, size = self._free.popitem(last=False)
            if isinstance(block, tuple):
                if size > count:
                    self._free[block] = size - count
                    self._free.move_to_end(block, last=False)
                count -= min(size, count)
            else:
                del self._references[block]
                count -= 1

    def take_chunk(self, sequence: Sequence, chunk: int) -> None:
        """Take the blocks of a prefill chunk; full ones can be found from now on."""
        super().take_chunk(sequence, chunk)
        size = self.block_size
        first, last = sequence.computed // size, (sequence.computed + chunk) // size
        for block in sequence.block_hashes[first:last]:
            if block not in self._references:
                self._references[block] = 1
                sequence.held_blocks.append(block)

    def release(self, sequence: Sequence, tokens: int) -> None:
        """Free the blocks of a sequence that holds `tokens` tokens."""
        held = sequence.held_blocks
        nameless = self.blocks_for(tokens) - len(held)
        self.used -= nameless
        last = next(reversed(self._free), None)
        if isinstance(last, tuple):
            self._free[last] += nameless
        elif nameless:
            self._runs += 1
            self._free[(self._runs,)] = nameless
        for block in reversed(held):
            self._references[block] -= 1
            if self._references[block] == 0:
                self._free[block] = 1
                self.used -= 1
        sequence.held_blocks = []


def block_hashes(
    hash_ids: Items[int], trace_block_tokens: int, block_size: int, prompt_tokens: int
) -> list[Hashable]:
    """Return the hashes of a prompt's full blocks from a trace's ids of larger blocks.

    A trace's id stands for all tokens up to the end of its block, as vLLM's hashes do.
    """
    return [
        f"{hash_ids[start // trace_block_tokens]}:{start % trace_block_tokens}"
        for start in range(0, prompt_tokens - block_size + 1, block_size)
        if start // trace_block_tokens < len(hash_ids)
    ]
