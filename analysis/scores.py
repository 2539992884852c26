"""Scores the texts of a run, unless they have been."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from analysis import read
from bellman.build import build
from bellman.errors import RunError
from bellman.quality import score as rouge
from bellman.quality import token_f1
from bellman.quality.score import METADATA_KEY

SCORES = "quality.parquet"


def score(folder: Path) -> None:
    """Write quality.parquet of a gathered run folder, where a text is not scored as configured.

    Raises `RunError` where the corpus is no longer the one that was used.
    """
    texts = folder / "texts.parquet"
    config = read.config(folder / "config.yaml")
    if not texts.exists() or not config:
        return
    quality = build(config["quality"], "quality", "bellman.quality")
    scorer = token_f1 if isinstance(quality, token_f1.TokenF1Quality) else rouge
    if is_scored(folder / SCORES, texts, scorer.made_with(quality)):
        return
    corpus = build(config["corpus"], "corpus", "bellman.corpus").load()
    used = read.json_file(folder / "provenance.json", {}).get("corpus", {}).get("digest")
    if used != corpus.digest:
        raise RunError(
            f"corpus {corpus.name} is not what {folder} was made with: restore it to score the run"
        )
    scorer.score_folder(folder, corpus, quality)


def is_scored(scores: Path, texts: Path, made: dict[str, object]) -> bool:
    """Whether every text has its scores, made as they would be now."""
    if not scores.exists():
        return False
    metadata = pq.read_schema(scores).metadata or {}
    if json.loads(metadata.get(METADATA_KEY, b"{}")) != made:
        return False
    ids = (set(read.parquet(file)["text_id"].to_pylist()) for file in (scores, texts))
    return next(ids) >= next(ids)
