"""Prefix caching: full blocks stay in the KV cache until their space is needed.

vLLM's rules. A block is known by a hash of its tokens and of all before them. A sequence that is
admitted takes the blocks of its longest known prefix as computed, whole blocks only, and never its
last token, which has to be computed for its logits. Freed blocks queue up for reuse, those of a
sequence from its last to its first; the oldest are taken first, and lose what they held then.

Blocks that hold generated tokens are found again, too: by the sequence itself after a preemption,
and by later prompts where `block_hashes` goes on beyond the sequence's own prompt. They are so from
the moment when the sequence leaves the batch; no prompt can contain them earlier.

Left out: a block that is computed twice is known once.
"""

from collections import OrderedDict
from collections.abc import Hashable
from collections.abc import Sequence as Items

from bellman.engines.base import Request
from bellman.engines.simulated.kv_blocks import KvBlocks
from bellman.engines.simulated.sequence import Sequence


class PrefixCachingBlocks(KvBlocks):
    """A pool that remembers what freed blocks hold."""

    def __init__(self, total: int, block_size: int) -> None:
        super().__init__(total, block_size)
        self.hit_tokens = 0
        self._references: dict[Hashable, int] = {}  # by hash; 0: held, but free for reuse
        # Free blocks, oldest first: a hash, or a `_Nameless` and how many they are.
        self._free: OrderedDict[Hashable, int] = OrderedDict({_Nameless(): total})

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
        sequence.held_blocks = dict(enumerate(hits))
        sequence.computed = len(hits) * self.block_size
        self.hit_tokens += sequence.computed
        return True

    def take(self, count: int) -> None:
        """Take the oldest free blocks; what they held is forgotten."""
        self.used += count
        while count > 0:
            block, size = self._free.popitem(last=False)
            if isinstance(block, _Nameless):
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
        for index, block in enumerate(sequence.block_hashes[first:last], start=first):
            if block in self._references:
                sequence.held_blocks[index] = None  # computed twice: the other one is known
            else:
                self._references[block] = 1
                sequence.held_blocks[index] = block

    def release(self, sequence: Sequence, tokens: int) -> None:
        """Free the blocks of a sequence that holds `tokens` tokens, from its last to its first.

        What it generated is known from now on, as far as `block_hashes` has names for it.
        """
        names, held = sequence.block_hashes, sequence.held_blocks
        named = min(tokens // self.block_size, len(names))
        self._free_nameless(self.blocks_for(tokens) - named)
        for index in reversed(range(named)):
            block = held.get(index)
            if block is not None:
                self._references[block] -= 1
                if self._references[block] == 0:
                    self._free[block] = 1
                    self.used -= 1
            elif index in held or names[index] in self._references:
                self._free_nameless(1)
            else:
                self._references[names[index]] = 0
                self._free[names[index]] = 1
                self.used -= 1
        sequence.held_blocks = {}

    def preempt(self, sequence: Sequence, tokens: int) -> None:
        """Free the blocks of a sequence that will come back, and look for all of them then."""
        names = sequence.block_hashes
        names += [(sequence, index) for index in range(len(names), tokens // self.block_size)]
        self.release(sequence, tokens)

    def _free_nameless(self, count: int) -> None:
        if count == 0:
            return
        self.used -= count
        last = next(reversed(self._free), None)
        if isinstance(last, _Nameless):
            self._free[last] += count
        else:
            self._free[_Nameless()] = count


class _Nameless:
    """Blocks that hold nothing."""


def request_hashes(
    request: Request, sequence: Sequence, trace_block_tokens: int, block_size: int
) -> list[Hashable]:
    """Return what is known of a request's full blocks: by a trace, or by its document."""
    prompt_tokens = sequence.prompt_tokens
    if request.hash_ids:
        tokens = prompt_tokens + sequence.output_tokens
        return block_hashes(request.hash_ids, trace_block_tokens, block_size, tokens)
    if request.document_tokens is None:
        return []
    return document_hashes(
        request.document_id,
        request.asked_words,
        request.document_tokens,
        prompt_tokens,
        block_size,
    )


def block_hashes(
    hash_ids: Items[int], trace_block_tokens: int, block_size: int, tokens: int
) -> list[Hashable]:
    """Return the hashes of the full blocks of so many tokens from a trace's ids of larger blocks.

    A trace's id stands for all tokens up to the end of its block, as vLLM's hashes do.
    """
    return [
        f"{hash_ids[start // trace_block_tokens]}:{start % trace_block_tokens}"
        for start in range(0, tokens - block_size + 1, block_size)
        if start // trace_block_tokens < len(hash_ids)
    ]


def document_hashes(
    document_id: str,
    asked_words: int | None,
    document_tokens: int,
    prompt_tokens: int,
    block_size: int,
) -> list[Hashable]:
    """Return the hashes of a prompt's full blocks: the document's are those of all its prompts.

    The document stands first in the prompt; a block that has more than the document is the ask's.
    """
    common = min(document_tokens, prompt_tokens) // block_size
    names: list[Hashable] = [f"{document_id}:{index}" for index in range(common)]
    own = range(common, prompt_tokens // block_size)
    return names + [f"{document_id}/{asked_words}:{index}" for index in own]
