"""The yardstick for F1 at any length: random sentences of the same document, cut to that length.

F1 peaks where a text is as long as the reference, whatever it says; the ratio to random text of
the same length takes that out.
"""

import random
from collections.abc import Sequence


def random_sentences(sentences: Sequence[str], words: int, key: str) -> str:
    """Draw sentences without repetition until `words` words are reached, cut there, one a line.

    `key` seeds the draw. A document shorter than `words` is given whole, shuffled.
    """
    order = list(sentences)
    random.Random(key).shuffle(order)
    lines = []
    left = words
    for sentence in order:
        if left <= 0:
            break
        taken = sentence.split()[:left]
        lines.append(" ".join(taken))
        left -= len(taken)
    return "\n".join(lines)
