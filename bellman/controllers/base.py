"""The interface of a control law."""

from dataclasses import dataclass
from typing import Any, Protocol

from bellman.sensing.observation import Observation


class LawState(Protocol):
    """Whatever a law remembers between periods; `level` is what it publishes."""

    @property
    def level(self) -> float:
        """Congestion in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Level:
    """The state of a law that remembers nothing but its last level."""

    level: float


class Controller(Protocol):
    """A control law: a frozen dataclass of its parameters, without clock, engine or randomness."""

    def start(self) -> Any:
        """Return the state before the first observation."""

    def update(self, state: Any, observation: Observation, dt_s: float) -> Any:
        """Return the next state after `observation`, `dt_s` seconds after the last one."""
