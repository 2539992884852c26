"""A client that asks again when it was refused, later and later.

Exponential back-off with full jitter (Brooker, "Exponential Backoff And Jitter", AWS Architecture
Blog, 2015): without jitter those who were refused together come back together.
"""

import random
from typing import Annotated

from pydantic import Field

from bellman.engines.base import RequestFailed
from bellman.schema import Positive, Whole, schema


@schema
class Retry:
    """Waits what the server asked for (Retry-After) and, uniform in [0, b], a random time more.

    b = first_wait_s x 2^(refusals before), at most longest_wait_s. Only refusals (429, 503) are
    sent again: what failed otherwise would fail again, or has cost the server its work.
    """

    attempts: Annotated[int, Field(ge=2)]
    """How often a request is sent at most."""
    first_wait_s: Positive
    longest_wait_s: Positive
    seed: Whole
    """Of the waits, with the repeat and the request's number: the same in all arms."""

    def start(self, repeat: int, request_id: int) -> "Backoff":
        """Return the state of a request that was not refused yet."""
        return Backoff(self, repeat, request_id)


class Backoff:
    """How often one request was refused, and its draws."""

    def __init__(self, rule: Retry, repeat: int, request_id: int) -> None:
        self._rule = rule
        self._seed = f"retry {rule.seed} {repeat} {request_id}"
        self._random: random.Random | None = None
        self._refused = 0

    def wait_s(self, failure: RequestFailed) -> float | None:
        """Return the wait before the next attempt, or None when there is none."""
        self._refused += 1
        if failure.status != "rejected" or self._refused >= self._rule.attempts:
            return None
        if self._random is None:
            self._random = random.Random(self._seed)
        most_s = min(self._rule.longest_wait_s, self._rule.first_wait_s * 2 ** (self._refused - 1))
        return (failure.retry_after_s or 0.0) + self._random.uniform(0.0, most_s)
