"""Paired arms under the same congestion: the paper's experiment.

Capacity of the uncontrolled engine -> one schedule a repeat -> every arm serves it.
"""

from typing import Any

from bellman.schema import schema
from bellman.settings import Settings
from experiments.studies.base import Cells
from experiments.studies.comparison import episode_cells, find_capacity


@schema
class Paired:
    """Every repeat's schedule, served under every arm."""

    def check(self, settings: Settings) -> None:
        """There is nothing that it cannot run."""

    def cells(self, settings: Settings) -> Cells:
        """Yield the capacity measurement, then all episodes."""
        capacity = yield from find_capacity(settings, {})
        if capacity is not None:  # without one there is no schedule
            yield episode_cells(settings, capacity.rps, {})

    def facts(self, settings: Settings) -> dict[str, Any]:
        """There is nothing more to know."""
        return {}
