"""In which order the arms of a repeat take their turns."""

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def balanced_orders(items: Sequence[Item], repeats: int, seed: int) -> list[list[Item]]:
    """Return an order of the items for each repeat: rows of a Williams design, seeded.

    Over a whole design (n repeats, 2 n for an odd n) every item stands in every place equally
    often and follows every other equally often, so that neither a drift of the machine nor what an
    arm leaves behind favours one (Williams, Australian Journal of Scientific Research, 1949).
    """
    count = len(items)
    # 0, n - 1, 1, n - 2, ...: neighbours differ by every amount once.
    first = [step // 2 if step % 2 == 0 else count - 1 - step // 2 for step in range(count)]
    rows = [[(place + shift) % count for place in first] for shift in range(count)]
    if count % 2 == 1 and count > 1:
        rows += [row[::-1] for row in rows]
    generator = random.Random(f"order {seed}")
    named = list(items)
    generator.shuffle(named)
    orders: list[list[Item]] = []
    while len(orders) < repeats:
        cycle = rows.copy()
        generator.shuffle(cycle)
        orders += [[named[place] for place in row] for row in cycle]
    return orders[:repeats]
