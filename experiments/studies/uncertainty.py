"""How far the claims of a simulated comparison move when its performance profile is wrong.

The whole comparison, capacity measurement included, with one coefficient of the profile changed at
a time, over what is plausible for it. All points share the seed, so that what moves is the profile
alone.
"""

from typing import Any

from omegaconf import OmegaConf

from analysis.uncertainty.present import AS_IT_IS
from bellman.errors import ConfigError, require
from bellman.schema import NotNegative, OneOrMore, schema
from bellman.settings import Settings
from experiments.studies.base import Cells
from experiments.studies.grid import cells_at, check_points
from experiments.studies.points import Point

PROFILE = "engine.profile"
GROUPS = ("front_end", "time", "energy")
"""Those of a profile that have coefficients."""


@schema
class Uncertainty:
    """A grid of one axis at a time: factors on the coefficients of the profile."""

    factors: dict[str, OneOrMore[NotNegative]]
    """Factors on a coefficient of the profile, by its name: `time.token_ms` and so on."""

    def __post_init__(self) -> None:
        """Check that there is one."""
        require(len(self.factors) > 0, "factors", self.factors, "must name a coefficient")

    def points(self, settings: Settings) -> list[Point]:
        """Return the profile as it is, then every change; raises `ConfigError`."""
        if settings.engine.source != "simulated":
            raise ConfigError(
                "engine",
                type(settings.engine).__name__,
                "must be simulated: it has a profile to change",
            )
        found = [Point({"coefficient": AS_IT_IS, "factor": 1.0}, {})]
        for name, factors in self.factors.items():
            value = OmegaConf.select(settings.config, f"{PROFILE}.{name}")
            group = name.partition(".")[0]
            if group not in GROUPS or not isinstance(value, int | float):
                places = ", ".join(f"{known}.<coefficient>" for known in GROUPS)
                raise ConfigError("study.factors", name, f"must be one of {places}")
            found += [
                Point(
                    {"coefficient": name, "factor": factor}, {f"{PROFILE}.{name}": factor * value}
                )
                for factor in factors
            ]
        return found

    def check(self, settings: Settings) -> None:
        """Validate the configuration of every point."""
        check_points(settings, self.points(settings))

    def cells(self, settings: Settings) -> Cells:
        """Yield all capacity measurements, then all episodes."""
        yield from cells_at(settings, self.points(settings))

    def facts(self, settings: Settings) -> dict[str, Any]:
        """Return the factors."""
        return {"factors": self.factors}
