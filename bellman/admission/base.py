"""The interface of admission control: who enters at the server's door, and how each request ended.

An admission is a frozen schema of parameters. `open` gives its state for one episode, the door,
which a simulated engine and a real server's middleware ask in the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from bellman.sensing.observation import Observation

Outcome = Literal["ok", "error", "left"]
"""How an admitted request ended: answered, failed at the server (or by its own fault), or whoever
asked was gone before the whole answer."""
TOO_MANY_REQUESTS: Literal[429] = 429
"""The client has sent more than it may (RFC 6585, 4)."""
UNAVAILABLE: Literal[503] = 503
"""The server has more than it can serve (RFC 9110, 15.6.4)."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a door may know of a request."""

    prompt_tokens: int | None = None
    """As far as known, else estimated by whoever asks."""
    max_tokens: int | None = None
    """Output tokens that it asks for at most; None where it sets no limit."""

    @property
    def tokens(self) -> int:
        """Tokens it may need, prompt and answer; what is not known counts for nothing."""
        return (self.prompt_tokens or 0) + (self.max_tokens or 0)


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to enter."""

    done: Callable[[Outcome, float], None]
    """Takes how the request ended, and when (`now_s`); to be called once."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer in place of a permit."""

    status: Literal[429, 503]
    reason: str
    retry_after_s: int | None = None
    """Whole seconds, as the header Retry-After has them; None where the door cannot know."""


class Door(Protocol):
    """The state of an admission in one episode. Times are seconds of one clock and never fall."""

    def acquire(self, arrival: Arrival, observation: Observation, now_s: float) -> Permit | Refusal:
        """Decide on a request that arrives now, before the engine sees it."""


class Admission(Protocol):
    """The parameters of a rule."""

    def open(self) -> Door:
        """Return the rule's state at the start of an episode."""


def _forget(outcome: Outcome, now_s: float) -> None:
    """Take no notice of how a request ended."""


FREE = Permit(_forget)
"""The permit of a rule that does not care how a request ends."""
