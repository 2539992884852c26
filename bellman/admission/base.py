"""The interface of admission control."""

from typing import Protocol

from bellman.sensing.observation import Observation


class Admission(Protocol):
    """Decides at the server's door, before the engine sees the request."""

    def refuse(self, observation: Observation) -> str | None:
        """Return the reason for refusing a request that arrives now (HTTP 429), or None."""
