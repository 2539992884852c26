"""Always ask for the same number of words, whatever the signal says."""

from bellman.errors import require
from bellman.schema import Count, schema


@schema
class Static:
    """scale = words / default_words at every level, and before the first signal."""

    words: Count
    """One of the application's budgets (`BudgetRules.ladder_words`)."""
    default_words: Count
    """The application's own default."""

    def __post_init__(self) -> None:
        """Check that it shortens."""
        at_most = f"must be at most default_words={self.default_words}"
        require(self.words <= self.default_words, "words", self.words, at_most)

    def scale(self, level: float) -> float:
        """Return words / default_words."""
        return self.words / self.default_words
