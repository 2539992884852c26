from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.studies.order import balanced_orders


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (2, 2), (3, 6), (4, 4), (5, 10), (8, 8)])
def test_every_arm_stands_everywhere_and_follows_every_other_equally_often(count, rows):
    arms = [f"arm{number}" for number in range(count)]
    orders = balanced_orders(arms, rows, seed=7)
    for place in range(count):
        assert set(Counter(order[place] for order in orders).values()) == {rows // count}
    follows = Counter(pair for order in orders for pair in pairwise(order))
    assert len(follows) == count * (count - 1)
    assert len(set(follows.values())) <= 1


@given(count=st.integers(1, 9), repeats=st.integers(1, 30), seed=st.integers(0, 5))
def test_each_repeat_has_every_arm_once_and_the_seed_decides(count, repeats, seed):
    orders = balanced_orders(range(count), repeats, seed)
    assert len(orders) == repeats
    assert all(sorted(order) == list(range(count)) for order in orders)
    assert orders == balanced_orders(range(count), repeats, seed)
    assert orders[: repeats // 2] == balanced_orders(range(count), repeats // 2, seed)
