"""Questions about papers of the ACL Anthology, from the files of the PyPI package `aclsum`.

ACLSum has, for each paper, an expert's sentence or two about its challenge, its approach and its
outcome (Takeshita et al., NAACL 2024). Here each is the reference answer to a question about the
paper; the questions' words are ours.
"""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from bellman.corpus.aclsum import (
    FIRST_YEAR,
    LICENCE,
    SHORTEST_CUT_WORDS,
    anthology_year,
    document_from_paper,
    package_data,
    read_papers,
)
from bellman.corpus.base import Corpus, Document
from bellman.corpus.documents import corpus_from_documents
from bellman.schema import Count, schema

QUESTIONS = {
    "challenge": "Which problem do the authors address?",
    "approach": "What do the authors propose or do about it?",
    "outcome": "What did the authors find or achieve?",
}


@schema
class AclSumQuestions:
    """Three questions a paper; documents are numbered by questions, paper by paper."""

    limit_documents: Count | None = None
    """Questions, not papers."""
    longest_words: Annotated[int, Field(ge=SHORTEST_CUT_WORDS)] | None = None
    """Cut documents after the last sentence that ends within so many words; None = whole ones."""

    def load(self) -> Corpus:
        """Load the questions in the package's order; raises `RunError`."""
        papers = read_papers(package_data())
        recent = [paper for paper in papers if anthology_year(paper["id"]) >= FIRST_YEAR]
        questions: list[Document] = []
        for paper in recent:
            document = document_from_paper(paper, self.longest_words)
            questions += [
                replace(
                    document,
                    document_id=f"{document.document_id}#{aspect}",
                    question=question,
                    reference=(paper["summary"] or {}).get(aspect) or "",
                )
                for aspect, question in QUESTIONS.items()
            ]
        before = {f"before {FIRST_YEAR}": 3 * (len(papers) - len(recent))}
        return corpus_from_documents(
            "aclsum_questions", LICENCE, questions, self.limit_documents, left_out=before
        )
