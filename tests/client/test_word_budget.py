"""The application's end of the signal: levels in, words out, whatever a server sends."""

import logging
import math
from pathlib import Path

import openai
import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from bellman.adaptation.concise import Concise
from bellman.adaptation.linear import Linear
from bellman.app.ask import Ask
from bellman.app.budget import BudgetRules
from bellman.build import build
from bellman.client import adapt
from bellman.client.adapted import LINEAR, RULES
from bellman.client.word_budget import WordBudget
from bellman.errors import ConfigError

ROOT = Path(__file__).parents[2]
LADDER = BudgetRules(task="summary", default_words=400, **RULES)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def budget(clock: Clock) -> WordBudget:
    return WordBudget(LADDER, LINEAR, forget_after_s=60.0, clock=clock)


def test_words_follow_the_level_down_the_ladder_and_up_again(budget: WordBudget) -> None:
    assert budget.ask() == Ask(None, None, 400)
    for level, words in [("0.0000", 400), ("0.5", 200), ("1.0000", 100), ("0.25", 283)]:
        budget.receive([level])
        assert (budget.level, budget.words) == (float(level), words)


def test_a_header_that_is_missing_or_malformed_changes_nothing_and_is_counted(
    budget: WordBudget, clock: Clock
) -> None:
    budget.receive(["0.5"])
    clock.now_s += 10
    for values in ([], ["0,5"], ["0.1", "0.2"], ["nan"], ["2"]):
        budget.receive(values)
    assert budget.ask() == Ask(0.5, 10.0, 200)
    assert budget.counts == {"received": 1, "absent": 1, "malformed": 4, "failures": 0}


def test_a_level_older_than_the_limit_is_forgotten(budget: WordBudget, clock: Clock) -> None:
    budget.receive(["1.0"])
    clock.now_s += 60
    assert budget.ask() == Ask(1.0, 60.0, 100)
    clock.now_s += 0.001
    assert budget.ask() == Ask(None, None, 400)
    assert (budget.level, budget.level_age_s) == (None, None)
    budget.receive(["0.5"])
    assert budget.ask() == Ask(0.5, 0.0, 200)


@settings(max_examples=30)
@given(st.lists(st.lists(st.one_of(st.text(), st.floats(0, 1).map(str)), max_size=3)))
def test_whatever_a_server_sends_the_words_are_a_rung(headers: list[list[str]]) -> None:
    budget = WordBudget(LADDER, LINEAR, forget_after_s=60.0)
    for values in headers:
        budget.receive(values)
    assert budget.words in LADDER.ladder_words
    assert sum(budget.counts.values()) == len(headers)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, "half", None])
def test_an_adaptation_that_fails_costs_no_request(
    scale: object, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd:
        def scale(self, level: float) -> float:
            return scale  # type: ignore[return-value]

    budget = WordBudget(LADDER, Odd(), forget_after_s=60.0)
    budget.receive(["0.5"])
    with caplog.at_level(logging.WARNING):
        assert [budget.words, budget.words] == [400, 400]
    assert len(caplog.records) == 1
    assert budget.counts["failures"] == 2


def test_the_defaults_are_the_experiments_own() -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", overrides=["arm=[bellman]"])
    application = dict(OmegaConf.to_container(config.application))
    assert application == {**RULES, "task": "summary", "default_words": 300}
    node = {
        key: value
        for key, value in config.arms.bellman.adaptation.items()
        if key in ("_target_", "alpha_min")
    }
    assert build(node, "adaptation") == LINEAR == Linear(0.25)


@pytest.mark.parametrize(
    ("given_values", "message"),
    [
        ({"task": "poem"}, "task=poem: must be one of summary, answer"),
        ({"default_words": 20}, "default_words=20: must be at least the floor of 75 words"),
        ({"forget_after_s": 0}, "forget_after_s=0: must be greater than 0"),
        ({"placeholder": ""}, "placeholder=: must be a text or None"),
        ({"ladder": 2}, "ladder=2: unknown key"),
        ({"adaptation": Concise()}, r"adaptation=Concise\(\): must shorten by words"),
    ],
)
def test_mistakes_are_one_line_before_any_request(given_values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        adapt(openai.OpenAI(api_key="none"), **given_values)
