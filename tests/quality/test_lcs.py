from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import _lcs_table, lcs_ind

from bellman.quality.lcs import lcs_indices, lcs_length, positions

TOKENS = st.lists(st.sampled_from("abcde"), max_size=80)


@given(TOKENS, TOKENS)
def test_length_is_that_of_the_table(reference: list[str], candidate: list[str]) -> None:
    expected = _lcs_table(reference, candidate)[-1][-1]
    assert lcs_length(reference, positions(candidate), len(candidate)) == expected


@given(TOKENS, TOKENS)
def test_of_several_subsequences_it_is_the_same_one(
    reference: list[str], candidate: list[str]
) -> None:
    expected = lcs_ind(reference, candidate)
    assert lcs_indices(reference, positions(candidate), len(candidate))[::-1] == expected


def test_known_subsequence() -> None:
    reference = ["police", "killed", "the", "gunman"]
    candidate = ["the", "gunman", "kill", "police"]
    assert lcs_length(reference, positions(candidate), 4) == 2
    assert lcs_indices(reference, positions(candidate), 4) == [3, 2]
