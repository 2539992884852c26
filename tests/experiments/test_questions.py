"""The second task: every paper's three questions, answered shorter under congestion, scored."""

import json

import pandas as pd
from rich.console import Console

from analysis.present import present
from bellman.app.prompt import document_prompt
from bellman.corpus.aclsum_questions import QUESTIONS, AclSumQuestions
from experiments.execute import execute
from tests.experiments.conftest import TINY, read_config


def test_a_paper_has_a_question_and_an_answer_for_each_aspect():
    corpus = AclSumQuestions(limit_documents=6).load()
    assert [one.document_id.partition("#")[2] for one in corpus.documents] == 2 * list(QUESTIONS)
    first, second, *_ = corpus.documents
    assert first.text == second.text
    assert first.reference != second.reference
    prompt = document_prompt(first, 38)
    assert prompt.startswith(first.text)
    question = QUESTIONS["challenge"]
    assert prompt.endswith(f"\n\n{question} Answer in 2 sentences, at most 38 words.")
    assert corpus.digest != AclSumQuestions(limit_documents=5).load().digest


def test_answers_get_shorter_down_to_their_floor_and_are_scored(tmp_path):
    config = read_config(
        "experiment=questions",
        *(entry for entry in TINY if not entry.startswith("quality")),
        "arrivals.overload=3",
        "congestion.q_low=2",
        "congestion.q_high=10",
        f"folder={tmp_path / 'run'}",
    )
    folder = execute(config, Console(quiet=True), draw=False)
    requests = pd.read_parquet(folder / "requests.parquet")
    treated = requests[requests["arm"] == "bellman"]["word_budget"]
    assert set(treated) <= {150, 106, 75, 53, 38}  # 50 tokens are 38 words
    assert treated.min() < 150
    summary = json.loads((folder / "summary.json").read_text())
    for arm in summary["arms"].values():
        assert 0 < arm["quality"]["token_f1"]["value"] < 1
        assert "rouge1_f1" not in arm["quality"]
    console = Console(record=True, width=120)
    present(folder, console, make=False)
    text = console.export_text()
    assert "token F1" in text
    assert "extractive stand-in" in text
