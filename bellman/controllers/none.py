"""The uncontrolled arm: the level is always 0, so the application never shortens."""

from bellman.controllers.base import Level
from bellman.schema import schema
from bellman.sensing.observation import Observation


@schema
class NoControl:
    """Publish level 0 whatever happens."""

    def start(self) -> Level:
        """Return level 0."""
        return Level(0.0)

    def update(self, state: Level, observation: Observation, dt_s: float) -> Level:
        """Return the state unchanged."""
        return state
