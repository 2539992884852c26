"""Paired arms under the same congestion: the paper's experiment.

Capacity of the uncontrolled engine -> one schedule a repeat -> every arm serves it.
"""

from typing import Any

from bellman.schema import schema
from bellman.settings import Settings
from experiments.studies.base import Cells
from experiments.studies.comparison import capacity_cell, episode_cells


@schema
class Paired:
    """Every repeat's schedule, served under every arm."""

    def check(self, settings: Settings) -> None:
        """There is nothing that it cannot run."""

    def cells(self, settings: Settings) -> Cells:
        """Yield the capacity measurement, then all episodes."""
        capacity_rps: float | None = settings.arrivals.capacity_rps
        measure = capacity_cell(settings, {})
        if measure is not None:
            (outcome,) = yield [measure]
            if outcome.content is None:
                return  # without a capacity there is no schedule
            capacity_rps = outcome.content["capacity_rps"]
        yield episode_cells(settings, capacity_rps, {})

    def facts(self, settings: Settings) -> dict[str, Any]:
        """There is nothing more to know."""
        return {}
