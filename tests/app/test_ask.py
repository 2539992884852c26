"""What an application asks for, by how its adaptation shortens."""

import pytest

from bellman.adaptation.cap import Cap
from bellman.adaptation.concise import Concise
from bellman.adaptation.linear import Linear
from bellman.adaptation.static import Static
from bellman.app.ask import decide
from bellman.app.budget import BudgetRules
from bellman.app.prompt import summary_prompt
from bellman.signal import Signal

RULES = BudgetRules(300, 2**0.5, 0.75, 2.0, 16, "summary", {"summary": 100})
HALF = Signal(0.5, 1.0)


@pytest.mark.parametrize(
    ("adaptation", "signal", "budget", "words", "max_tokens"),
    [
        (Linear(0.25), None, 300, 300, 816),  # 2 x 300 / 0.75 + 16
        (Linear(0.25), HALF, 150, 150, 416),
        (Cap(0.25), None, 300, 300, 816),
        (Cap(0.25), Signal(0.0, 1.0), 300, 300, 816),  # nothing is cut without congestion
        (Cap(0.25), HALF, 150, 300, 200),  # 150 / 0.75, and the prompt stays
        (Cap(0.25), Signal(1.0, 1.0), 75, 300, 100),
        (Static(212, 300), None, 212, 212, 582),  # before the first signal, too
        (Static(212, 300), Signal(1.0, 1.0), 212, 212, 582),
        (Concise(), HALF, 300, None, 816),
    ],
)
def test_words_and_limit(adaptation, signal, budget, words, max_tokens):
    ask = decide(signal, 3.0, adaptation, RULES)
    assert (ask.word_budget, ask.words(RULES)) == (budget, words)
    assert ask.max_tokens(ask.words(RULES), RULES) == max_tokens
    assert ask.level_age_s == (None if signal is None else 2.0)


def test_being_concise_names_no_number():
    prompt = summary_prompt("A text.", None)
    assert prompt.startswith("A text.\n\n")
    assert "oncise" in prompt
    assert not any(character.isdigit() for character in prompt)
