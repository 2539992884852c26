"""No admission control: every request enters the engine's queue."""

from dataclasses import dataclass

from bellman.sensing.observation import Observation


@dataclass(frozen=True)
class AcceptAll:
    """Accept everything."""

    def refuse(self, observation: Observation) -> str | None:
        """Accept."""
        return None
