"""The comparison on small grids around the configuration: where each of the paper's claims holds.

One product over all axes would be thousands of comparisons. Each grid varies one entry, or two that
belong together; every other entry is as configured.
"""

from typing import Any

from bellman.errors import require
from bellman.schema import OneOrMore, schema
from bellman.settings import Settings
from experiments.studies.base import Cells
from experiments.studies.grid import cells_at, check_points
from experiments.studies.points import Point, product

Axes = dict[str, OneOrMore[Any]]


@schema
class ClaimsMap:
    """Several grids of one or two axes, and the configuration as it is.

    An axis of one value is what the other points of its grid have in common.
    """

    grids: dict[str, Axes]
    """Axes by the name of the grid; keys and values as those of `Grid`."""

    def __post_init__(self) -> None:
        """Check what can be drawn as a map."""
        require(len(self.grids) > 0, "grids", self.grids, "must name a grid and its axes")
        for name, axes in self.grids.items():
            drawn = [key for key, values in axes.items() if len(values) > 1]
            few = 1 <= len(drawn) <= 2
            require(few, f"grids.{name}", drawn, "must be one or two axes of several values")
            for key, values in axes.items():
                distinct = len({repr(value) for value in values}) == len(values)
                require(distinct, f"grids.{name}.{key}", values, "must be different values")

    def points(self) -> list[Point]:
        """Return the configuration as it is, then every point of the grids, each once."""
        found = [Point({}, {})]
        for axes in self.grids.values():
            found += [point for point in product(axes) if point not in found]
        return found

    def check(self, settings: Settings) -> None:
        """Validate the configuration of every point."""
        check_points(settings, self.points())

    def cells(self, settings: Settings) -> Cells:
        """Yield all capacity measurements, then all episodes."""
        yield from cells_at(settings, self.points())

    def facts(self, settings: Settings) -> dict[str, Any]:
        """Return the grids."""
        return {"grids": self.grids}
