"""A fluid model of the queue beside the simulated engine, on the same load and the same law."""

from typing import Any

from bellman.adaptation.base import form_of
from bellman.errors import ConfigError
from bellman.schema import schema
from bellman.settings import Settings
from experiments.cells.fluid import FluidCell
from experiments.studies.base import Cells
from experiments.studies.comparison import episode_cells, find_capacity


@schema
class Fluid:
    """The paired comparison, and for each arm what the fluid model predicts."""

    def check(self, settings: Settings) -> None:
        """Refuse an engine without a profile, and arms that ask for no number of words."""
        if settings.engine.source != "simulated":
            name = type(settings.engine).__name__
            raise ConfigError("engine", name, "must be simulated: the fluid needs its profile")
        for name, arm in settings.arms.items():
            if form_of(arm.adaptation) != "words":
                key = f"arms.{name}.adaptation"
                kind = type(arm.adaptation).__name__
                raise ConfigError(key, kind, "must ask for words: the fluid knows their lengths")

    def cells(self, settings: Settings) -> Cells:
        """Yield the capacity, then the episodes and the predictions."""
        capacity = yield from find_capacity(settings, {})
        if capacity is None:
            return
        predictions = [
            FluidCell(
                arm=arm,
                values=settings.episode_values(arm),
                capacity_rps=capacity.rps,
                source=settings.engine.source,
                label=f"fluid {arm}",
            )
            for arm in settings.arms
        ]
        yield [*episode_cells(settings, capacity.rps, {}), *predictions]

    def facts(self, settings: Settings) -> dict[str, Any]:
        """There is nothing more to know."""
        return {}
