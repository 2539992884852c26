"""What lies between the published level and a request that acts on it: delay, loss, who listens."""

import zlib
from collections import deque
from collections.abc import Sequence

from bellman.signal import Signal, SignalReceiver

DRAWS = 2**32


def drawn(*key: object) -> float:
    """Return a number in [0, 1) that depends on the key alone."""
    return zlib.crc32(repr(key).encode()) / DRAWS


def listens(request_id: int, share: float, seed: int) -> bool:
    """Whether a request is one of the share that acts on the signal; the same under every arm."""
    return share >= 1.0 or drawn("listens", seed, request_id) < share


class SignalPath:
    """Hands the levels of the responses to the application, late or not at all."""

    def __init__(
        self, *, delay_s: float = 0.0, loss: float = 0.0, listening: float = 1.0, seed: int = 0
    ) -> None:
        self.receiver = SignalReceiver()
        self._delay_s = delay_s
        self._loss = loss
        self._listening = listening
        self._seed = seed
        self._sent = 0
        self._on_the_way: deque[tuple[float, Sequence[str]]] = deque()

    def receive(self, header_values: Sequence[str], now_s: float) -> None:
        """Take the header's values of one response (or one poll) that came at `now_s`."""
        if self._loss:
            self._sent += 1
            if drawn("lost", self._seed, self._sent) < self._loss:
                return
        if self._delay_s:
            self._on_the_way.append((now_s + self._delay_s, header_values))
        else:
            self.receiver.receive(header_values, now_s)

    def last(self, now_s: float) -> Signal | None:
        """Return the last valid signal that has arrived."""
        while self._on_the_way and self._on_the_way[0][0] <= now_s:
            due_s, header_values = self._on_the_way.popleft()
            self.receiver.receive(header_values, due_s)
        return self.receiver.last

    def heard_by(self, request_id: int, now_s: float) -> Signal | None:
        """Return what a request sent at `now_s` acts on; None where it does not listen."""
        if not listens(request_id, self._listening, self._seed):
            return None
        return self.last(now_s)
