"""No admission control: every request enters the engine's queue."""

from bellman.admission.base import FREE, Arrival, Permit
from bellman.schema import schema
from bellman.sensing.observation import Observation


@schema
class AcceptAll:
    """Accept everything."""

    def open(self) -> "AcceptAll":
        """Return itself: there is no state."""
        return self

    def acquire(self, arrival: Arrival, observation: Observation, now_s: float) -> Permit:
        """Accept."""
        return FREE
