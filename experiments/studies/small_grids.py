"""Grids of one or two axes around a configuration: what several studies vary.

One product over all axes would be thousands of comparisons. Each grid varies one entry, or two that
belong together; every other entry is as configured.
"""

from collections.abc import Mapping
from typing import Any

from bellman.errors import require
from bellman.schema import OneOrMore
from experiments.studies.points import Point, product

Axes = dict[str, OneOrMore[Any]]
"""Values by the keys that `Grid` takes; an axis of one value is what a grid's points share."""


def check_grids(grids: Mapping[str, Axes]) -> None:
    """Check what can be drawn as a map or a line; raises `ConfigError`."""
    require(len(grids) > 0, "grids", grids, "must name a grid and its axes")
    for name, axes in grids.items():
        drawn = [key for key, values in axes.items() if len(values) > 1]
        few = 1 <= len(drawn) <= 2
        require(few, f"grids.{name}", drawn, "must be one or two axes of several values")
        for key, values in axes.items():
            distinct = len({repr(value) for value in values}) == len(values)
            require(distinct, f"grids.{name}.{key}", values, "must be different values")


def points_of(grids: Mapping[str, Axes]) -> list[Point]:
    """Return the configuration as it is, then every point of the grids, each once."""
    found = [Point({}, {})]
    for axes in grids.values():
        found += [point for point in product(axes) if point not in found]
    return found
