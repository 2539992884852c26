"""One period of a law, and the level that may be published of it."""

import math
from typing import Any

from bellman.controllers.base import Controller
from bellman.sensing.observation import Observation


def step(
    controller: Controller, state: Any, observation: Observation, dt_s: float
) -> tuple[Any, float]:
    """Return the law's next state and its level in [0, 1].

    Raises ValueError for a level that is no number, and whatever the law raises.
    """
    after = controller.update(state, observation, dt_s)
    if not math.isfinite(after.level):
        raise ValueError(f"the law {type(controller).__name__} gave the level {after.level}")
    return after, min(1.0, max(0.0, after.level))
