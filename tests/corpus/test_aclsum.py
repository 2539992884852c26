import subprocess
import sys

import pytest

from bellman.corpus.aclsum import FIRST_YEAR, AclSum, anthology_year, document_from_paper
from bellman.corpus.base import Corpus
from bellman.errors import ConfigError
from bellman.words import count_words


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return AclSum().load()


@pytest.mark.parametrize(
    ("paper_id", "year"),
    [("P16-1234", 2016), ("2020.acl-main.47", 2020), ("W99-0101", 1999), ("D07-1016", 2007)],
)
def test_year_of_an_anthology_id(paper_id: str, year: int) -> None:
    assert anthology_year(paper_id) == year


def test_keeps_the_papers_under_cc_by_and_counts_the_others(corpus: Corpus) -> None:
    assert len(corpus.documents) == 112
    assert corpus.left_out == {"before 2016": 138}
    assert all(anthology_year(document.document_id) >= FIRST_YEAR for document in corpus.documents)
    assert "CC BY 4.0" in corpus.licence


def test_documents_are_introduction_and_conclusion(corpus: Corpus) -> None:
    document = {document.document_id: document for document in corpus.documents}["D18-1065"]
    introduction, conclusion = document.text.split("\n\n")
    assert introduction.startswith("In structured input-output models as used in tasks like trans")
    assert conclusion.startswith("In this paper we showed a simple yet effective approximation of")
    assert document.reference.startswith("In this paper we show that a simple beam approximation")
    assert len(document.reference.split("\n")) == 3
    assert " ".join(document.sentences) == document.text.replace("\n\n", " ")
    assert "*" not in document.sentences


def test_no_tokenised_spacing_is_left(corpus: Corpus) -> None:
    for document in corpus.documents:
        for sentence in (*document.sentences, *document.reference.split("\n")):
            for spaced in (" ,", "( ", " )", " ; ", "et al ."):
                assert spaced not in sentence


def test_lengths_suit_summarization(corpus: Corpus) -> None:
    for document in corpus.documents:
        assert 100 < count_words(document.text) < 3000
        assert 40 < count_words(document.reference) < 400


def test_loads_the_same_twice(corpus: Corpus) -> None:
    assert AclSum().load().digest == corpus.digest


def test_limit_takes_the_first(corpus: Corpus) -> None:
    assert AclSum(limit_documents=5).load().documents == corpus.documents[:5]


def test_refuses_a_limit_of_zero() -> None:
    with pytest.raises(ConfigError, match=r"^limit_documents=0"):
        AclSum(limit_documents=0)


def test_papers_without_a_conclusion_have_one_paragraph() -> None:
    paper = {"id": "P17-1001", "sentences": {"abstract": ["A ."], "introduction": ["B .", "1"]}}
    document = document_from_paper(paper)
    assert (document.text, document.reference) == ("B.", "A.")


def test_importing_loads_neither_datasets_nor_the_data_package() -> None:
    check = "import sys, bellman.corpus.aclsum as a; print({'datasets', 'aclsum'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_long_documents_are_cut_at_a_sentence_end(corpus: Corpus) -> None:
    short = AclSum(longest_words=300).load()
    assert len(short.documents) == len(corpus.documents)
    for cut, whole in zip(short.documents, corpus.documents, strict=True):
        assert whole.text.startswith(cut.text)
        assert whole.sentences[: len(cut.sentences)] == cut.sentences
        assert cut.reference == whole.reference
        if cut.text == whole.text:
            continue
        following = whole.sentences[len(cut.sentences)]
        assert 0 < count_words(cut.text) <= 300 < count_words(f"{cut.text} {following}")


def test_a_cut_that_leaves_no_sentence_is_refused() -> None:
    with pytest.raises(ConfigError, match="longest_words"):
        AclSum(longest_words=20)
