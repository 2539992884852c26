"""What an application asks for in one request, and on which level it decided so."""

from dataclasses import dataclass

from bellman.adaptation.base import Adaptation
from bellman.app.budget import BudgetRules
from bellman.signal import Signal


@dataclass(frozen=True, slots=True)
class Ask:
    """What the application decided for one request, and on what."""

    level: float | None
    level_age_s: float | None
    word_budget: int


def decide(signal: Signal | None, now_s: float, adaptation: Adaptation, rules: BudgetRules) -> Ask:
    """Pick the word budget for a request sent at `now_s`: the default without a signal."""
    if signal is None:
        return Ask(None, None, rules.default_words)
    budget_words = rules.budget_words(adaptation.scale(signal.level))
    return Ask(signal.level, now_s - signal.time_s, budget_words)
