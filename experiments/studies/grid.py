"""The comparison at every point of a grid: where a claim holds, and where it does not.

What is the same at several points (the baseline, where an axis is of an arm's law alone; the
capacity, where it is of the load alone) runs once and stands at all of them.
"""

from collections.abc import Sequence
from typing import Any

from bellman.errors import require
from bellman.schema import OneOrMore, schema
from bellman.settings import Settings
from experiments.cells.base import Cell
from experiments.studies.base import Cells
from experiments.studies.comparison import capacity_cell, episode_cells
from experiments.studies.points import Point, product


@schema
class Grid:
    """Every combination of the values of some entries."""

    axes: dict[str, OneOrMore[Any]]
    """Values by the dotted key of an entry, or by `group/sub` for the options of a group."""

    def __post_init__(self) -> None:
        """Check the form; whether the entries exist, the configuration says."""
        require(len(self.axes) > 0, "axes", self.axes, "must name an entry and its values")
        for key, values in self.axes.items():
            distinct = len({repr(value) for value in values}) == len(values)
            require(distinct, f"axes.{key}", values, "must be different values")

    def check(self, settings: Settings) -> None:
        """Validate the configuration of every point."""
        check_points(settings, product(self.axes))

    def cells(self, settings: Settings) -> Cells:
        """Yield all capacity measurements, then all episodes."""
        yield from cells_at(settings, product(self.axes))

    def facts(self, settings: Settings) -> dict[str, Any]:
        """Return the axes and their values."""
        return {"axes": self.axes}


def check_points(settings: Settings, points: Sequence[Point]) -> None:
    """Validate the configuration of every point; raises `ConfigError`."""
    for point in points:
        point.settings(settings)


def cells_at(settings: Settings, points: Sequence[Point]) -> Cells:
    """Yield the capacity measurements of all points, then their episodes.

    A point whose capacity could not be measured has no episodes; the others go on.
    """
    found = [(point, point.settings(settings)) for point in points]
    measures = [capacity_cell(at, point.axes) for point, at in found]
    outcomes = yield [measure for measure in measures if measure is not None]
    contents = iter([outcome.content for outcome in outcomes])
    episodes: list[Cell] = []
    for (point, at), measure in zip(found, measures, strict=True):
        capacity_rps: float | None = at.arrivals.capacity_rps
        if measure is not None:
            content = next(contents)
            if content is None:
                continue
            capacity_rps = content["capacity_rps"]
        episodes += episode_cells(at, capacity_rps, point.axes)
    yield episodes
