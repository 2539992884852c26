"""The cells of a comparison: the capacity, then every repeat's schedule under every arm.

What `paired` runs once, and the grids run at each of their points.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bellman.settings import Settings
from experiments.cells.capacity import CapacityCell
from experiments.cells.episode import EpisodeCell
from experiments.studies.base import Search
from experiments.studies.order import balanced_orders


@dataclass(frozen=True)
class Capacity:
    """What the schedules are drawn with."""

    rps: float | None
    """None where the arrivals need none."""


def find_capacity(settings: Settings, axes: Mapping[str, Any]) -> Search[Capacity | None]:
    """Return the capacity, measured where it must be; None where it could not be measured."""
    measure = capacity_cell(settings, axes)
    if measure is None:
        return Capacity(settings.arrivals.capacity_rps)
    (outcome,) = yield [measure]
    return None if outcome.content is None else Capacity(outcome.content["capacity_rps"])


def capacity_cell(settings: Settings, axes: Mapping[str, Any]) -> CapacityCell | None:
    """Return the cell that measures the capacity; None where it is given, or not needed."""
    if not settings.arrivals.needs_capacity:
        return None
    values = settings.values
    return CapacityCell(
        values=settings.episode_values(settings.run.baseline),
        capacity=values["capacity"],
        source=settings.engine.source,
        label=f"capacity{described(axes)}",
        axes=axes,
    )


def episode_cells(
    settings: Settings, capacity_rps: float | None, axes: Mapping[str, Any]
) -> list[EpisodeCell]:
    """Return the episodes in the order in which they are run."""
    repeats = settings.run.repeats
    orders = balanced_orders(list(settings.arms), repeats, settings.run.seed)
    return [
        EpisodeCell(
            arm=arm,
            repeat=repeat,
            values=settings.episode_values(arm),
            capacity_rps=capacity_rps,
            source=settings.engine.source,
            label=f"{repeat + 1}/{repeats} {arm}{described(axes)}",
            axes=axes,
        )
        for repeat, order in enumerate(orders)
        for arm in order
    ]


def described(axes: Mapping[str, Any]) -> str:
    """Return where a point of a grid is, for messages."""
    return "".join(f" {name}={value}" for name, value in axes.items())
