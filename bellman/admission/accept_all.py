"""No admission control: every request enters the engine's queue."""

from bellman.schema import schema
from bellman.sensing.observation import Observation


@schema
class AcceptAll:
    """Accept everything."""

    def refuse(self, observation: Observation) -> str | None:
        """Accept."""
        return None
