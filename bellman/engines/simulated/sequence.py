"""One request as the simulated scheduler sees it: lengths, progress and times."""

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Sequence:
    """A request's tokens. The scheduler writes everything below `block_hashes`."""

    prompt_tokens: int
    output_tokens: int
    """How many tokens the model will generate: what happens, not what the server knows."""
    token_limit: int
    """`max_tokens`: the most the server has to expect."""
    priority: int = 0
    """The lowest number goes first, where the scheduler goes by priority."""
    block_hashes: list[Hashable] = field(default_factory=list)
    """Hashes of its full blocks, where prefixes are cached: the prompt's, and the answer's where a
    later prompt may have them; those of what a preempted sequence generated are added."""

    number: int = 0
    """Order of arrival, where the scheduler goes by priority."""
    held_blocks: dict[int, Hashable] = field(default_factory=dict)
    """Blocks of `block_hashes` that it refers to, by their place; None: known as another's."""
    generated: int = 0
    """Output tokens; while it decodes this is the number it had when it began to."""
    computed: int = 0
    """Tokens whose keys and values are in the cache, while it prefills."""
    prompt_counted: int = 0
    """Prompt tokens that went into the totals; recomputed ones are not counted again."""
    phase: int = 0
    """Length of its context minus completed steps: constant while it decodes."""
    finish_step: int = -1
    """The step whose end brings its last token; -1 while it does not decode."""
    arrival_s: float = 0.0
    admitted_s: float = -1.0
    """When it first got a place in the batch."""
    first_token_s: float = -1.0
    last_token_s: float = -1.0
    preemptions: int = 0
    aborted: bool = False
    joins: list[tuple[int, int]] = field(default_factory=list)
    """(step, tokens before it) of each step that ended a prefill, when steps are logged."""

    @property
    def known_tokens(self) -> int:
        """Prompt and generated tokens: what a prefill has to compute."""
        return self.prompt_tokens + self.generated
