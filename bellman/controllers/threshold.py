"""The simplest law: full congestion while too many requests are outstanding."""

from bellman.controllers.base import Level
from bellman.schema import Whole, schema
from bellman.sensing.observation import Observation


@schema
class Threshold:
    """Level 1 while more than `limit` requests are outstanding in the engine, else 0."""

    limit: Whole

    def start(self) -> Level:
        """Return level 0."""
        return Level(0.0)

    def update(self, state: Level, observation: Observation, dt_s: float) -> Level:
        """Compare the outstanding requests, running and waiting, with the limit."""
        return Level(1.0 if observation.outstanding > self.limit else 0.0)
