"""The comparison on small grids around the configuration: where the paper's claims hold."""

from typing import Any

from bellman.schema import schema
from bellman.settings import Settings
from experiments.studies.base import Cells
from experiments.studies.grid import cells_at, check_points
from experiments.studies.small_grids import Axes, check_grids, points_of


@schema
class ClaimsMap:
    """Several grids of one or two axes, and the configuration as it is."""

    grids: dict[str, Axes]
    """Axes by the name of the grid."""

    def __post_init__(self) -> None:
        """Check what can be drawn as a map."""
        check_grids(self.grids)

    def check(self, settings: Settings) -> None:
        """Validate the configuration of every point."""
        check_points(settings, points_of(self.grids))

    def cells(self, settings: Settings) -> Cells:
        """Yield all capacity measurements, then all episodes."""
        yield from cells_at(settings, points_of(self.grids))

    def facts(self, settings: Settings) -> dict[str, Any]:
        """Return the grids."""
        return {"grids": self.grids}
