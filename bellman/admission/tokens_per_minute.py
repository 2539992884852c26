"""Tokens per minute, as providers of hosted models limit their customers: 429 and Retry-After."""

import math
from collections import deque

from bellman.admission.base import FREE, TOO_MANY_REQUESTS, Arrival, Permit, Refusal
from bellman.schema import Count, schema
from bellman.sensing.observation import Observation

MINUTE_S = 60.0


@schema
class TokensPerMinute:
    """Refuse a request (429) that would exceed the tokens of the last 60 seconds.

    A request counts at its arrival by its prompt + max_tokens, whatever it will write; one that is
    refused does not count.
    """

    tokens: Count

    def open(self) -> "MeteredDoor":
        """Return a door through which nothing has gone."""
        return MeteredDoor(self.tokens)


class MeteredDoor:
    """Remembers what was let in during the last minute."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._admitted: deque[tuple[float, int]] = deque()
        self._tokens = 0

    def acquire(self, arrival: Arrival, observation: Observation, now_s: float) -> Permit | Refusal:
        """Refuse what does not fit; Retry-After is when it would, if nobody else came."""
        while self._admitted and self._admitted[0][0] <= now_s - MINUTE_S:
            self._tokens -= self._admitted.popleft()[1]
        needed = arrival.tokens
        if self._tokens + needed <= self._limit:
            self._admitted.append((now_s, needed))
            self._tokens += needed
            return FREE
        reason = f"{self._tokens} + {needed} tokens in a minute, limit {self._limit}"
        return Refusal(TOO_MANY_REQUESTS, reason, self._fits_after_s(needed, now_s))

    def _fits_after_s(self, needed: int, now_s: float) -> int | None:
        """Return in how many whole seconds `needed` tokens fit; None for more than the limit."""
        tokens = self._tokens
        for admitted_s, admitted in self._admitted:
            tokens -= admitted
            if tokens + needed <= self._limit:
                return max(1, math.ceil(MINUTE_S - (now_s - admitted_s)))
        return None
