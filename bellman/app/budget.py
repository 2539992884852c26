"""From a scale to a word budget on a geometric ladder, with a floor and a token guard."""

import math
from dataclasses import field
from functools import cached_property, lru_cache
from typing import Annotated

from pydantic import Field

from bellman.errors import require
from bellman.schema import Count, Whole, schema


@schema
class BudgetRules:
    """How the application turns a wanted scale into words and tokens."""

    default_words: Count
    """Words asked for without congestion (ours)."""
    ladder_ratio: Annotated[float, Field(gt=1.01)]
    """Ratio of neighbouring budgets; few distinct prompts, each answer can be recorded."""
    words_per_token: Annotated[float, Field(gt=0, le=2)]
    """English words a token of the model; turns token floors and guards into words and back."""
    guard_ratio: Annotated[float, Field(ge=1)]
    """`max_tokens` = guard_ratio x the asked words in tokens + guard_margin_tokens."""
    guard_margin_tokens: Whole
    task: str
    """Which of `floor_tokens` applies."""
    floor_tokens: dict[str, Count] = field(default_factory=dict)
    """Shortest useful answer by task, in tokens."""

    def __post_init__(self) -> None:
        """Check the task and its floor."""
        known = f"must be one of {', '.join(self.floor_tokens)}"
        require(self.task in self.floor_tokens, "task", self.task, known)
        least = f"must be at least the floor of {self.floor_words} words"
        require(self.default_words >= self.floor_words, "default_words", self.default_words, least)

    @property
    def floor_words(self) -> int:
        """The task's floor in words, rounded up."""
        return math.ceil(self.floor_tokens[self.task] * self.words_per_token)

    @cached_property
    def ladder_words(self) -> tuple[int, ...]:
        """Budgets from the default down to the floor: default / ratio^k, rounded."""
        rungs: list[int] = []
        words: float = self.default_words
        # 300 / sqrt(2)^6 is 37.4999...: a hair more makes it the 38 that it stands for.
        while (rung := math.floor(words + 0.5 + 1e-6)) >= self.floor_words:
            if not rungs or rung < rungs[-1]:
                rungs.append(rung)
            words /= self.ladder_ratio
        return tuple(rungs)

    def budget_words(self, scale: float) -> int:
        """Return the rung nearest to scale x default by ratio (ours; the longer one on a tie)."""
        return _nearest_rung(self.ladder_words, scale * self.default_words)

    def max_tokens(self, asked_words: int) -> int:
        """Return the token guard for an answer of `asked_words`."""
        tokens = self.guard_ratio * asked_words / self.words_per_token
        return math.ceil(tokens) + self.guard_margin_tokens

    def tokens(self, words: int) -> int:
        """Return how many tokens so many words are."""
        return math.ceil(words / self.words_per_token)


@lru_cache(maxsize=1024)  # a level holds for many requests
def _nearest_rung(rungs: tuple[int, ...], wanted_words: float) -> int:
    return min(rungs, key=lambda rung: (abs(math.log(rung / wanted_words)), -rung))
