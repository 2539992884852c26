"""What an application asks for in one request, and on which level it decided so."""

from msgspec import Struct

from bellman.adaptation.base import Adaptation, Form, form_of
from bellman.app.budget import BudgetRules
from bellman.signal import Signal


class Ask(Struct, frozen=True):
    """What the application decided for one request, and on what."""

    level: float | None
    level_age_s: float | None
    word_budget: int
    form: Form = "words"

    def words(self, rules: BudgetRules) -> int | None:
        """Return the number of words that the prompt names; None where it names none."""
        if self.form == "concise":
            return None
        return self.word_budget if self.form == "words" else rules.default_words

    def max_tokens(self, asked_words: int | None, rules: BudgetRules) -> int:
        """Return the token limit of an answer to a prompt that names `asked_words`."""
        if self.form == "tokens" and self.word_budget < rules.default_words:
            return rules.tokens(self.word_budget)
        return rules.max_tokens(rules.default_words if asked_words is None else asked_words)


def decide(signal: Signal | None, now_s: float, adaptation: Adaptation, rules: BudgetRules) -> Ask:
    """Pick the word budget for a request sent at `now_s`; no signal is one of no congestion."""
    level = 0.0 if signal is None else signal.level
    budget_words = rules.budget_words(adaptation.scale(level))
    if signal is None:
        return Ask(None, None, budget_words, form_of(adaptation))
    return Ask(level, now_s - signal.time_s, budget_words, form_of(adaptation))
