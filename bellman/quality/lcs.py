"""Longest common subsequences on bit vectors: a row of the table is one big integer.

Row i holds a 0 bit at column j where t[i][j + 1] = t[i][j] + 1, so t[i][j] is the number of zeros
among its j lowest bits (Hyyrö 2004, "Bit-parallel LCS-length computation revisited").
"""

from collections.abc import Mapping, Sequence

Positions = Mapping[str, int]
"""For each token of a sequence, the bits of its places."""


def positions(tokens: Sequence[str]) -> dict[str, int]:
    """Return the places of each token as a bit set."""
    places: dict[str, int] = {}
    bit = 1
    for token in tokens:
        places[token] = places.get(token, 0) | bit
        bit <<= 1
    return places


def lcs_length(one: Sequence[str], other: Positions, other_length: int) -> int:
    """Return the length of a longest common subsequence."""
    full = (1 << other_length) - 1
    row = full
    for token in one:
        if token in other:  # others change nothing
            update = row & other[token]
            row = ((row + update) | (row - update)) & full
    return other_length - row.bit_count()


def lcs_indices(reference: Sequence[str], candidate: Positions, candidate_length: int) -> list[int]:
    """Return the places in `reference` of one longest common subsequence, last first.

    Of several it is the one that `rouge_score` finds: from the end of the table it takes a match,
    else goes left if only that keeps the length, else up. It stays in a row until it meets a match,
    so a row is left by a match, to the left of the column, or without any.
    """
    full = (1 << candidate_length) - 1
    row = full
    rows = []
    for index, token in enumerate(reference):
        if token in candidate:  # others change nothing
            matches = candidate[token]
            update = row & matches
            below = ((row + update) | (row - update)) & full
            rows.append((index, matches, row, below))
            row = below
    taken = []
    column = candidate_length
    for index, matches, above, row in reversed(rows):
        if column == 0:
            break
        low = (1 << column) - 1
        matches_here = matches >> (column - 1) & 1
        if matches_here or (row & low).bit_count() < (above & low).bit_count():
            taken.append(index)
            column = (matches & low).bit_length() - 1
    return taken
