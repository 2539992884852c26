"""The comparison on small grids around the configuration: what it takes to upset each arm."""

from typing import Any

from bellman.schema import Name, OneOrMore, schema
from bellman.settings import Settings
from experiments.studies.base import Cells
from experiments.studies.grid import cells_at, check_points
from experiments.studies.small_grids import Axes, check_grids, points_of


@schema
class Sensitivity:
    """Several grids of one or two axes, and what is shown of every arm over them."""

    grids: dict[str, Axes]
    """Axes by the name of the grid."""
    quantities: OneOrMore[Name]
    """Of those in `analysis.sensitivity.quantities`."""

    def __post_init__(self) -> None:
        """Check what can be drawn."""
        check_grids(self.grids)

    def check(self, settings: Settings) -> None:
        """Validate the configuration of every point."""
        check_points(settings, points_of(self.grids))

    def cells(self, settings: Settings) -> Cells:
        """Yield all capacity measurements, then all episodes."""
        yield from cells_at(settings, points_of(self.grids))

    def facts(self, settings: Settings) -> dict[str, Any]:
        """Return the grids and the quantities."""
        return {"grids": self.grids, "quantities": self.quantities}
