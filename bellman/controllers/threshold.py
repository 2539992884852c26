"""The simplest law: full congestion while too many requests are outstanding."""

from dataclasses import dataclass

from bellman.controllers.base import Level
from bellman.errors import require
from bellman.sensing.observation import Observation


@dataclass(frozen=True)
class Threshold:
    """Level 1 while more than `limit` requests are outstanding in the engine, else 0."""

    limit: int

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.limit >= 0, "controller.limit", self.limit, "must be 0 or more")

    def start(self) -> Level:
        """Return level 0."""
        return Level(0.0)

    def update(self, state: Level, observation: Observation, dt_s: float) -> Level:
        """Compare the outstanding requests, running and waiting, with the limit."""
        return Level(1.0 if observation.outstanding > self.limit else 0.0)
