"""Requests that were sent and are still in the front end: the engine has not seen them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random

from bellman.engines.simulated.front_end import FrontEnd
from bellman.engines.simulated.sequence import Sequence
from bellman.sensing.observation import Observation


class Arriving:
    """Delays each request by the front end, then tells `arrive`."""

    def __init__(self, front_end: FrontEnd, arrive: Callable[[Sequence], None]) -> None:
        self._front_end = front_end
        self._arrive = arrive
        self._loop = asyncio.get_running_loop()
        self._random = Random(0)  # the k-th request of every episode has the same delay
        self._timers: dict[Sequence, asyncio.TimerHandle] = {}
        self._tokens = 0

    def send(self, sequence: Sequence) -> None:
        """Take a request that is sent now."""
        delay_s = self._front_end.delay_s(self._random)
        if delay_s == 0:
            self._arrive(sequence)
            return
        self._timers[sequence] = self._loop.call_later(delay_s, self._leave, sequence)
        self._tokens += sequence.known_tokens + sequence.token_limit

    def take_back(self, sequence: Sequence) -> bool:
        """Forget a request; False where it has arrived already."""
        timer = self._timers.get(sequence)
        if timer is None:
            return False
        timer.cancel()
        self._forget(sequence)
        return True

    def seen_in(self, observation: Observation) -> Observation:
        """Return the engine's observation with these requests waiting: the server's door counts."""
        if not self._timers:
            return observation
        tokens = observation.outstanding_tokens
        return replace(
            observation,
            waiting=observation.waiting + len(self._timers),
            outstanding_tokens=None if tokens is None else tokens + self._tokens,
        )

    def close(self) -> None:
        """Let none arrive any more."""
        for timer in self._timers.values():
            timer.cancel()

    def _leave(self, sequence: Sequence) -> None:
        self._forget(sequence)
        self._arrive(sequence)

    def _forget(self, sequence: Sequence) -> None:
        del self._timers[sequence]
        self._tokens -= sequence.known_tokens + sequence.token_limit
