"""What steps cost in time and energy: the interface of performance models."""

from typing import Protocol


class Steps(Protocol):
    """Consecutive steps of an unchanged batch, each adding one token to every sequence in it."""

    def seconds(self, steps: int) -> float:
        """Return how long the first `steps` steps take; 0 for none, and strictly growing."""

    def joules(self, steps: int) -> float:
        """Return the energy of the first `steps` steps."""


class Performance(Protocol):
    """A model of one server."""

    @property
    def idle_w(self) -> float:
        """Watts of all its devices when no step runs."""

    def steps(
        self, prefill_tokens: int, prefill_pairs: int, sequences: int, kv_tokens: int
    ) -> Steps:
        """Return the cost of a step and, if it has no prefill, of those that follow it.

        `prefill_pairs` is the number of (query, key) pairs in the attention of the prefill chunks:
        p new tokens after c computed ones make p * c + p * (p + 1) / 2. `kv_tokens` is the sum of
        the context lengths, current token included, of the `sequences` that decode.
        """
