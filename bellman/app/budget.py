"""From a scale to a word budget on a geometric ladder, with a floor and a token guard."""

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from bellman.errors import require


@dataclass(frozen=True)
class BudgetRules:
    """How the application turns a wanted scale into words and tokens."""

    default_words: int
    """Words asked for without congestion (ours)."""
    ladder_ratio: float
    """Ratio of neighbouring budgets; few distinct prompts, each answer can be recorded."""
    words_per_token: float
    """English words a token of the model; turns token floors and guards into words and back."""
    guard_ratio: float
    """`max_tokens` = guard_ratio x the asked words in tokens + guard_margin_tokens."""
    guard_margin_tokens: int
    task: str
    """Which of `floor_tokens` applies."""
    floor_tokens: dict[str, int] = field(default_factory=dict)
    """Shortest useful answer by task, in tokens."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        key = "application"
        require(
            self.ladder_ratio > 1.01, f"{key}.ladder_ratio", self.ladder_ratio, "must exceed 1.01"
        )
        require(
            0 < self.words_per_token <= 2,
            f"{key}.words_per_token",
            self.words_per_token,
            "must be in (0, 2]",
        )
        require(self.guard_ratio >= 1, f"{key}.guard_ratio", self.guard_ratio, "must be 1 or more")
        require(
            self.guard_margin_tokens >= 0,
            f"{key}.guard_margin_tokens",
            self.guard_margin_tokens,
            "must be 0 or more",
        )
        require(
            self.task in self.floor_tokens,
            f"{key}.task",
            self.task,
            f"must be one of {', '.join(self.floor_tokens)}",
        )
        require(
            min(self.floor_tokens.values()) >= 1,
            f"{key}.floor_tokens",
            self.floor_tokens,
            "must be 1 token or more each",
        )
        require(
            self.default_words >= self.floor_words,
            f"{key}.default_words",
            self.default_words,
            f"must be at least the floor of {self.floor_words} words",
        )

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


@lru_cache(maxsize=1024)  # a level holds for many requests
def _nearest_rung(rungs: tuple[int, ...], wanted_words: float) -> int:
    return min(rungs, key=lambda rung: (abs(math.log(rung / wanted_words)), -rung))
