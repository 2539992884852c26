"""A short comparison that says whether the installation works; its numbers are no results."""

from typing import Any

from bellman.schema import schema
from bellman.settings import Settings
from experiments.studies.base import Cells
from experiments.studies.paired import Paired


@schema
class KickTheTires:
    """The paired comparison, marked so that nobody takes its numbers for results."""

    def check(self, settings: Settings) -> None:
        """There is nothing that it cannot run."""

    def cells(self, settings: Settings) -> Cells:
        """Yield what a paired comparison yields."""
        yield from Paired().cells(settings)

    def facts(self, settings: Settings) -> dict[str, Any]:
        """Return why every claim, figure and page must say that the run is none to judge by."""
        return {"no_results": "a check of the installation, too short for results"}
