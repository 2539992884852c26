import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from omegaconf import DictConfig, OmegaConf
from rouge_score.rouge_scorer import RougeScorer as Reference

from bellman.app.texts import TextStore, text_id
from bellman.build import build
from bellman.corpus.base import Corpus, Document
from bellman.errors import ConfigError, RunError
from bellman.quality.rouge import RougeScorer
from bellman.quality.score import QUALITY, RougeQuality, score_folder, score_texts
from bellman.records import TEXTS, JsonLinesWriter, read_json_lines, write_parquet

SENTENCES = tuple(f"Sentence {number} is about topic {number} alone." for number in range(30))
DOCUMENT = Document("d", " ".join(SENTENCES), SENTENCES, "\n".join(SENTENCES[:3]))
OTHER = Document("e", "Ein Satz.", ("Ein Satz.",), "Ein Satz.")
CORPUS = Corpus("two", (DOCUMENT, OTHER), "none")
CONFIG = RougeQuality(use_stemmer=True, random_draws=4, seed=0)


def score(*texts: str, config: RougeQuality = CONFIG) -> pd.DataFrame:
    return score_texts([("d", text) for text in texts], CORPUS, config)


def test_each_distinct_pair_is_scored_once() -> None:
    frame = score_texts([("d", "A."), ("e", "A."), ("d", "A."), ("d", "B.")], CORPUS, CONFIG)
    assert list(frame.text_id) == [text_id("d", "A."), text_id("e", "A."), text_id("d", "B.")]
    assert list(frame.columns) == QUALITY.names


def test_the_reference_itself_scores_1_and_beats_random_sentences() -> None:
    row = score(" ".join(SENTENCES[:3])).iloc[0]
    for kind in ("rouge1", "rouge2", "rougeL", "rougeLsum"):
        assert row[f"{kind}_precision"] == row[f"{kind}_recall"] == row[f"{kind}_f1"] == 1
        assert 0 < row[f"{kind}_f1_random"] < 1
        assert row[f"{kind}_f1_ratio"] == pytest.approx(1 / row[f"{kind}_f1_random"])
    assert row.words == row.reference_words == 21


def test_sentences_of_a_one_line_answer_are_told_apart() -> None:
    """Swapped sentences lose order (L), not content (Lsum)."""
    row = score(" ".join(reversed(SENTENCES[:3]))).iloc[0]
    assert row.rougeLsum_f1 == 1
    assert row.rougeL_f1 < 1


def test_random_text_is_as_good_as_random_text() -> None:
    """With the whole document asked for, the random text is the document: the ratio is 1."""
    row = score(DOCUMENT.text).iloc[0]
    assert row.rouge1_f1_ratio == pytest.approx(1)


def test_an_answer_without_words_scores_0_and_has_no_ratio() -> None:
    frame = score(".", "")
    assert list(frame.rouge1_f1) == [0, 0]
    assert frame.words.tolist() == [1, 0]
    assert np.isnan(frame.rouge1_f1_ratio[1])


AWKWARD = (" \n\t", "?! —", "😀👍🏽", "\ud83d", "Topic 1 \udc4d alone.", "7 3.5", "主题", "ıİßﬁ")


def test_any_answer_is_scored() -> None:
    frame = score(*AWKWARD)
    assert len(frame) == len(AWKWARD) and frame.rouge1_f1.notna().all()
    assert (frame.rouge1_f1[:4] == 0).all() and frame.rouge1_f1[4] > 0


def test_lines_are_sentences_as_in_rouge_score() -> None:
    """Of points without full stops each line is one, and a line may have several sentences."""
    text = "- Topic 1 alone\n- Sentence 2 is here\nTopic 0. About topic 2."
    lines = "- Topic 1 alone\n- Sentence 2 is here\nTopic 0.\nAbout topic 2."
    expected = Reference(["rougeLsum"], use_stemmer=True).score(DOCUMENT.reference, lines)
    assert score(text).rougeLsum_f1[0] == pytest.approx(expected["rougeLsum"].fmeasure)


def test_a_literal_newline_mark_is_no_word() -> None:
    assert score("One topic.<n>Two topics.").words[0] == 4


def test_scores_match_the_plain_scorer() -> None:
    row = score("Topic 1 alone. Sentence 2 is here.").iloc[0]
    scores = RougeScorer(True).score(DOCUMENT.reference, "Topic 1 alone.\nSentence 2 is here.")
    for kind, expected in scores.items():
        assert row[f"{kind}_f1"] == pytest.approx(expected.fmeasure)


def test_seed_moves_the_random_texts_alone() -> None:
    text = " ".join(SENTENCES[1:4])
    first, second = score(text), score(text, config=RougeQuality(True, 4, seed=9))
    assert first.rouge1_f1[0] == second.rouge1_f1[0]
    assert first.rougeL_f1_random[0] != second.rougeL_f1_random[0]
    pd.testing.assert_frame_equal(first, score(text))


def test_without_draws_the_ratio_is_not_measured() -> None:
    frame = score("Topic 1.", config=RougeQuality(True, random_draws=0, seed=0))
    assert frame.rouge1_f1_random.isna().all()
    assert frame.rouge1_f1_ratio.isna().all()
    assert frame.rouge1_f1.notna().all()


def test_writes_quality_beside_the_texts(tmp_path: Path) -> None:
    rows = [{"text_id": text_id("d", t), "document_id": "d", "text": t} for t in ("Topic 1.", "")]
    write_parquet(pa.Table.from_pylist(rows, schema=TEXTS), tmp_path / "texts.parquet")
    score_folder(tmp_path, CORPUS, CONFIG)
    table = pq.read_table(tmp_path / "quality.parquet")
    assert table.schema.remove_metadata() == QUALITY
    assert table["text_id"].to_pylist() == [row["text_id"] for row in rows]
    assert table["rouge1_f1_ratio"][1].as_py() is None
    metadata = json.loads(table.schema.metadata[b"bellman"])
    assert metadata["use_stemmer"] is True
    assert metadata["rouge_score"] == "0.1.2"


def test_a_run_without_texts_has_an_empty_table(tmp_path: Path) -> None:
    write_parquet(TEXTS.empty_table(), tmp_path / "texts.parquet")
    score_folder(tmp_path, CORPUS, CONFIG)
    table = pq.read_table(tmp_path / "quality.parquet")
    assert table.num_rows == 0
    assert table.schema.names == QUALITY.names


def test_another_corpus_is_refused() -> None:
    with pytest.raises(RunError, match="corpus two has no document 'z'"):
        score_texts([("z", "text")], CORPUS, CONFIG)


def test_the_configuration_builds_and_is_checked() -> None:
    node = OmegaConf.load(Path(__file__).parents[2] / "conf" / "quality" / "rouge.yaml")
    assert isinstance(node, DictConfig)
    assert build(node, "quality") == RougeQuality(use_stemmer=True, random_draws=5, seed=0)
    with pytest.raises(ConfigError, match=r"^random_draws=-1"):
        RougeQuality(True, -1, 0)


def test_half_a_surrogate_pair_is_stored_and_scored(tmp_path: Path) -> None:
    """A server that cuts an emoji in two sends one, which UTF-8 cannot hold."""
    with JsonLinesWriter(tmp_path / "texts.jsonl") as writer:
        stored = TextStore(writer).add("d", "Topic 1 \ud83d alone.")
    write_parquet(read_json_lines(tmp_path / "texts.jsonl", TEXTS), tmp_path / "texts.parquet")
    score_folder(tmp_path, CORPUS, CONFIG)
    table = pq.read_table(tmp_path / "quality.parquet")
    assert table["text_id"].to_pylist() == [stored.text_id]
    assert table["rouge1_f1"][0].as_py() > 0
