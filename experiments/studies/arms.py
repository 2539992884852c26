"""Every arm on the same schedules, to be ranked, and set beside each other at equal length."""

from typing import Any

from bellman.schema import schema
from bellman.settings import Settings
from experiments.studies.base import Cells
from experiments.studies.paired import Paired


@schema
class Arms:
    """The paired comparison of many arms, shown as a ranking and as a Pareto front."""

    def check(self, settings: Settings) -> None:
        """There is nothing that it cannot run."""

    def cells(self, settings: Settings) -> Cells:
        """Yield what a paired comparison yields."""
        yield from Paired().cells(settings)

    def facts(self, settings: Settings) -> dict[str, Any]:
        """There is nothing more to know."""
        return {}
