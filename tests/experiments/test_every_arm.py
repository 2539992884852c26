"""Every arm in conf/arm serves a whole run: a new one is tested by being there."""

import json

import pandas as pd
import pyarrow.compute as pc
import pytest
from rich.console import Console

from analysis.gather import gather
from bellman.errors import ConfigError, RunError
from bellman.responses.recorded import (
    PACKAGED,
    read_recorded,
    write_recorded,
)
from experiments.execute import execute, prepare
from tests.experiments.conftest import CONF, TINY, read_config

ARMS = sorted(path.stem for path in (CONF / "arm").glob("*.yaml"))


PROJECTS = PACKAGED / "bank_smollm2_135m_aclsum.parquet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    config = read_config(
        f"arm=[{','.join(ARMS)}]",
        *TINY,
        "arrivals.capacity_rps=12",
        "congestion.q_low=5",
        "congestion.q_high=40",
        f"folder={tmp_path_factory.mktemp('run') / 'arms'}",
    )
    with pytest.MonkeyPatch.context() as patch:  # the records are enough
        patch.setattr("experiments.execute.check_end", lambda _, draw: None)
        patch.setattr("experiments.execute.finish", lambda run, *_, draw: gather(run.path))
        return execute(config, Console(quiet=True), draw=False)


def test_every_arm_accounts_for_every_request(folder):
    requests = pd.read_parquet(folder / "requests.parquet")
    offered = set(pd.read_parquet(folder / "schedule.parquet")["request_id"])
    assert len(offered) > 100
    for arm in ARMS:
        own = requests[requests["arm"] == arm]
        assert set(own["request_id"]) == offered, arm
        assert len(own) == len(offered), arm
        assert set(own["status"]) <= {"ok", "rejected"}, arm


def test_every_arm_publishes_a_level(folder):
    timeline = pd.read_parquet(folder / "timeline.parquet")
    for arm in ARMS:
        levels = timeline[timeline["arm"] == arm]["level"]
        assert levels.between(0, 1).all(), arm


@pytest.fixture(scope="module")
def answered(folder):
    """Return the answered requests of an arm."""
    requests = pd.read_parquet(folder / "requests.parquet")
    requests = requests[requests["status"] == "ok"]
    return lambda arm: requests[requests["arm"] == arm]


def test_a_cap_cuts_answers_and_their_texts_and_asks_as_ever(folder, answered):
    capped = answered("cap")
    capped = capped[capped["word_budget"] < 300]
    assert len(capped) > 10
    assert set(capped["asked_words"]) == {300}
    assert (capped["output_tokens"] <= capped["max_tokens"]).all()
    cut = capped[capped["finish_reason"] == "length"]
    assert len(cut) > 10
    assert (cut["output_tokens"] == cut["max_tokens"]).all()
    # What the metric reads is cut, too, to the share of the words that the tokens are.
    bank, _ = read_recorded(PROJECTS)
    whole = bank.to_pandas().query("asked_words == 300").set_index("document_id")
    texts = pd.read_parquet(folder / "texts.parquet").set_index("text_id")["text"]
    for row in cut.itertuples():
        answer = whole.loc[row.document_id]
        assert answer["text"].startswith(texts[row.text_id])
        share = row.output_tokens / answer["output_tokens"]
        assert row.output_words == pytest.approx(share * answer["words"], abs=2)


def test_a_static_arm_asks_for_its_words_from_the_first_request_on(answered):
    for words in (75, 106, 150, 212):
        assert set(answered(f"static_{words}")["asked_words"]) == {words}


def test_being_concise_asks_for_no_number_and_has_the_answers_that_were_recorded(answered):
    concise = answered("concise")
    assert concise["asked_words"].isna().all()
    assert concise["word_budget"].isna().all()
    bank, _ = read_recorded(PROJECTS)
    answers = bank.to_pandas().query("asked_words.isna()").set_index("document_id")
    assert len(answers) == len(set(answers.index)) == 112
    whole = concise[concise["finish_reason"] == "stop"]  # the others end at `max_tokens`
    assert len(whole) > 100
    assert whole["output_words"].tolist() == answers.loc[whole["document_id"], "words"].tolist()


@pytest.fixture(scope="module")
def not_concise(tmp_path_factory):
    """Return a bank without answers to `be concise`."""
    table, metadata = read_recorded(PROJECTS)
    path = tmp_path_factory.mktemp("bank") / "bank.parquet"
    write_recorded(table.filter(pc.is_valid(table["asked_words"])), metadata, path)
    return path


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["arm=[none,concise]", "engine/bank=recorded", "engine.bank.path={not_concise}"],
            "arms.concise.adaptation=Concise: the response bank (recorded from "
            "HuggingFaceTB/SmolLM2-135M-Instruct) has no answers to the prompt `be concise`: "
            "not measured; record them with scripts/record_responses.py --concise, or use a real",
        ),
        (
            ["arm=[none,concise]", "engine/bank=extractive"],
            "arms.concise.adaptation=Concise: the response bank (extractive stand-in) has no",
        ),
        (
            ["arm=[none,static_150]", "arms.static_150.adaptation.words=200"],
            "arms.static_150.adaptation.words=200: must be a budget of the application: 300, 212, ",
        ),
    ],
)
def test_what_the_bank_cannot_answer_is_refused_before_anything_runs(
    overrides, message, tmp_path, not_concise
):
    overrides = [one.format(not_concise=not_concise) for one in overrides]
    with pytest.raises(ConfigError) as caught:
        prepare(read_config(f"outputs={tmp_path}", *overrides))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_how_concise_a_length_that_is_given_becomes_is_not_made_up(tmp_path):
    trace = tmp_path / "trace.jsonl"
    rows = [
        {"timestamp": 1000 * number, "input_length": 500, "output_length": 20, "hash_ids": [1]}
        for number in range(2)
    ]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = read_config(
        "arm=[none,concise]",
        "repeats=1",
        "arrivals=trace_mooncake",
        f"arrivals.path={trace}",
        "arrivals.warmup_s=0",
        "corpus.limit_documents=4",
        f"folder={tmp_path / 'run'}",
    )
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RunError) as caught:
        patch.setattr("experiments.execute.check_end", lambda _, draw: None)
        patch.setattr("experiments.execute.finish", lambda run, *_, draw: gather(run.path))
        execute(config, Console(quiet=True), draw=False)
    message = str(caught.value)
    assert message.startswith("1 episode failed (1/1 concise: ")
    assert "nobody has measured how much `be concise` shortens those" in message
