"""Load shedding by queue length: the classic alternative to shortening outputs."""

from bellman.schema import Count, schema
from bellman.sensing.observation import Observation


@schema
class QueueLimit:
    """Refuse a request while `limit` or more requests are outstanding in the engine."""

    limit: Count
    """Outstanding requests, running and waiting."""

    def refuse(self, observation: Observation) -> str | None:
        """Refuse when the limit is reached."""
        if observation.outstanding < self.limit:
            return None
        return f"queue limit: {observation.outstanding} outstanding, limit {self.limit}"
