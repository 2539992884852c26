"""A fluid model of a continuous batch: what it does for one request in the seconds to come."""

from dataclasses import dataclass

STEPS = 20
"""Steps of the integration (Euler): coarse, and far finer than the load is known."""


@dataclass(frozen=True, slots=True)
class Load:
    """The engine now, and what is coming."""

    outstanding: float
    """Requests in the engine, running and waiting."""
    places: float
    """Requests that the batch holds."""
    tokens: float
    """Mean length of their answers."""
    arrivals_rps: float
    base_s: float
    """A step takes base_s + sequence_s x batch seconds and gives each running request a token."""
    sequence_s: float


def served_tokens(load: Load, new_tokens: float, horizon_s: float) -> float:
    """Return the tokens that a request which comes now gets within `horizon_s` seconds.

    Those in the engine have answers of `load.tokens` on average, those that come of `new_tokens`;
    a running one ends with probability 1 / mean length a token. Places go to who came first, so
    the request has its first token when all that were there before it have places or are gone.
    """
    dt_s = horizon_s / STEPS
    old, new, served = load.outstanding, 0.0, 0.0
    for _ in range(STEPS):
        running_old = min(old, load.places)
        running_new = min(new, load.places - running_old)
        batch = max(1.0, running_old + running_new)
        progress = dt_s / max(1e-9, load.base_s + load.sequence_s * batch)
        if old <= load.places:
            served += progress
        old -= running_old * min(1.0, progress / load.tokens)
        new -= running_new * min(1.0, progress / new_tokens)
        new += load.arrivals_rps * dt_s
    return served
