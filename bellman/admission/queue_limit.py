"""Load shedding by queue length: the classic alternative to shortening outputs."""

from dataclasses import dataclass

from bellman.errors import require
from bellman.sensing.observation import Observation


@dataclass(frozen=True)
class QueueLimit:
    """Refuse a request while `limit` or more requests are outstanding in the engine."""

    limit: int
    """Outstanding requests, running and waiting."""

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.limit >= 1, "admission.limit", self.limit, "must be 1 or more")

    def refuse(self, observation: Observation) -> str | None:
        """Refuse when the limit is reached."""
        if observation.outstanding < self.limit:
            return None
        return f"queue limit: {observation.outstanding} outstanding, limit {self.limit}"
