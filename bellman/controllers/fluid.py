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
    a running one ends with probability 1 / mean length a token. What finds no place waits, first
    come first served: the request has its first token when all before it have places.
    """
    dt_s = horizon_s / STEPS
    old, new, served = load.outstanding, 0.0, 0.0
    ahead = max(0.0, load.outstanding - load.places)
    for _ in range(STEPS):
        batch = max(1.0, min(old + new, load.places))
        progress = dt_s / max(1e-9, load.base_s + load.sequence_s * batch)
        if ahead <= 0:
            served += progress
        running = batch / max(1.0, old + new)
        old_done = min(old, running * old * progress / load.tokens)
        new_done = min(new, running * new * progress / new_tokens)
        old -= old_done
        new += load.arrivals_rps * dt_s - new_done
        ahead -= old_done + new_done
    return served
