"""Scores the answers of a run that has all its records, with the corpus that it says it used."""

from pathlib import Path

from analysis import read
from bellman.build import build
from bellman.errors import RunError
from bellman.quality.score import score_folder

QUALITY_FILE = "quality.parquet"


def score(folder: Path) -> None:
    """Write quality.parquet where it is still to be made.

    Raises `RunError` where the corpus is no longer the one that was used, and `ConfigError` where
    the folder, which may come from anywhere, names a corpus that is none of ours.
    """
    if (folder / QUALITY_FILE).exists():
        return
    config = read.config(folder / "config.yaml")
    corpus = build(config.get("corpus"), "corpus", "bellman.corpus").load()
    used = read.json_file(folder / "provenance.json", {}).get("corpus", {}).get("digest")
    if used != corpus.digest:
        raise RunError(
            f"corpus {corpus.name} is not what {folder} was made with: restore it to score the run"
        )
    score_folder(folder, corpus, build(config.get("quality"), "quality", "bellman.quality"))
