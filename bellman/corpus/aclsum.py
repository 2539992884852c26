"""ACLSum: papers of the ACL Anthology, from the files of the PyPI package `aclsum`.

A document is a paper's introduction and conclusion, the reference its authors' own abstract
(Takeshita et al., "ACLSum", NAACL 2024, arXiv 2403.05303). Only papers of 2016 and later are kept:
the Anthology licenses those under CC BY 4.0, earlier ones not for commercial use.
"""

import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from bellman.corpus.base import Corpus, Document
from bellman.corpus.detokenize import detokenize_sentences
from bellman.corpus.documents import corpus_from_documents
from bellman.errors import RunError
from bellman.schema import Count, schema
from bellman.words import count_words

FIRST_YEAR = 2016
LICENCE = "CC BY 4.0 (ACL Anthology, papers of 2016 and later)"
SPLITS = ("train", "val", "test")
SHORTEST_CUT_WORDS = 100
"""Longer than any first sentence, so that every document keeps one."""
CENTURY_PIVOT = 60
"""Two-digit years from here on are of the 1900s: the Anthology's oldest papers are of 1965."""


@schema
class AclSum:
    """The default corpus: comes with the installation; English; 200 to 2,500 words a document."""

    limit_documents: Count | None = None
    longest_words: Annotated[int, Field(ge=SHORTEST_CUT_WORDS)] | None = None
    """Cut documents after the last sentence that ends within so many words; None = whole ones."""

    def load(self) -> Corpus:
        """Load the papers in the package's order (train, val, test); raises `RunError`."""
        return load_once(self)


@cache  # a package does not change while a process runs
def load_once(config: AclSum) -> Corpus:
    """Load the corpus, the first time a process asks for it."""
    # A second's import that `--help` and simulated capacity searches should not pay.
    import datasets  # noqa: PLC0415

    papers = read_papers(package_data())
    recent = [paper for paper in papers if anthology_year(paper["id"]) >= FIRST_YEAR]
    return corpus_from_documents(
        "aclsum",
        LICENCE,
        (
            document_from_paper(paper, config.longest_words)
            for paper in datasets.Dataset.from_list(recent)
        ),
        config.limit_documents,
        left_out={f"before {FIRST_YEAR}": len(papers) - len(recent)},
    )


def package_data() -> Path:
    """Find the package's data without importing it (it would import its own JSON library)."""
    package = importlib.util.find_spec("aclsum")
    if package is None or not package.submodule_search_locations:
        raise RunError("corpus=aclsum needs the package aclsum: pip install aclsum==0.1.2")
    return Path(package.submodule_search_locations[0]) / "dataset"


def read_papers(folder: Path) -> list[dict[str, Any]]:
    """Read id, tokenised sentences by section, and summaries by aspect of every paper."""
    lines = (line for split in SPLITS for line in (folder / f"{split}.jsonl").open(encoding="utf8"))
    papers = map(json.loads, lines)
    return [{key: paper.get(key) for key in ("id", "sentences", "summary")} for paper in papers]


def anthology_year(paper_id: str) -> int:
    """Return the year in an ACL Anthology id, old (`P16-1234`) or new (`2020.acl-main.47`)."""
    new = re.match(r"(\d{4})\.", paper_id)
    if new:
        return int(new[1])
    old = re.match(r"[A-Z](\d{2})-\d{4}$", paper_id)
    if old is None:
        raise RunError(f"corpus=aclsum: {paper_id!r} is no ACL Anthology id")
    year = int(old[1])
    return 1900 + year if year >= CENTURY_PIVOT else 2000 + year


def document_from_paper(paper: Mapping[str, Any], longest_words: int | None = None) -> Document:
    """Make a document of two paragraphs, introduction and conclusion, and the abstract."""
    sections = {name: readable(sentences) for name, sentences in paper["sentences"].items()}
    paragraphs = [sections.get(name, []) for name in ("introduction", "conclusion")]
    if longest_words is not None:
        paragraphs = cut(paragraphs, longest_words)
    return Document(
        document_id=paper["id"],
        text="\n\n".join(" ".join(sentences) for sentences in paragraphs if sentences),
        sentences=tuple(sentence for sentences in paragraphs for sentence in sentences),
        reference="\n".join(sections.get("abstract", [])),
    )


def cut(paragraphs: Sequence[Sequence[str]], longest_words: int) -> list[list[str]]:
    """Keep whole sentences from the start while they have at most `longest_words` words."""
    left_words = longest_words
    kept: list[list[str]] = []
    for paragraph in paragraphs:
        kept.append([])
        for sentence in paragraph:
            left_words -= count_words(sentence)
            if left_words < 0:
                return kept
            kept[-1].append(sentence)
    return kept


def readable(sentences: Sequence[str]) -> list[str]:
    """Detokenise a section; lines without a letter (footnote marks, page numbers) go."""
    detokenized = detokenize_sentences(sentences)
    return [sentence for sentence in detokenized if any(map(str.isalpha, sentence))]
