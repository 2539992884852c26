"""The whole configuration, built and validated before anything runs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from omegaconf import DictConfig, OmegaConf
from pydantic import Field

from bellman.app.budget import BudgetRules
from bellman.attempts.give_up import GIVE_UP
from bellman.build import build, build_class
from bellman.engines.base import Control
from bellman.episode import Arm
from bellman.errors import require
from bellman.load.pacing import PacingLimits
from bellman.load.saturation import CapacitySettings
from bellman.schema import Count, NotNegative, Positive, Whole, schema
from bellman.slo import Slo

EPISODE_KEYS = (
    "application",
    "arrivals",
    "corpus",
    "drain_s",
    "energy",
    "engine",
    "load_model",
    "pacing",
    "request_timeout_s",
    "seed",
    "signal",
    "timeline_period_s",
)
"""The entries that shape an episode's records, besides its arm."""
PLACE_KEYS = ("outputs", "folder", "executor")
"""Where and by which hands a run is made does not change what it is: left out of its identity."""
ARM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+.-]*")


@schema
class RunSettings:
    """The experiment's own numbers; keys stand at the configuration's top level."""

    name: str
    """Name of the experiment: the folder under `outputs`."""
    seed: Whole
    repeats: Count
    baseline: str
    """The arm that the others are compared with."""
    paper_arm: str
    """The arm that stands for the paper's: its comparison gets the verdicts on the claims."""
    timeline_period_s: Positive
    drain_s: NotNegative
    """How long after the schedule's end the outstanding requests may finish."""
    request_timeout_s: Positive
    """Deadline of a request, from its actual send."""
    outputs: str
    folder: str | None = None
    """The run's folder, instead of `<outputs>/<name>/<run id>`."""
    model: str | None = None
    """Model name or folder, for engines that load one."""
    prefix_caching: bool = False
    """Whether engines that a run starts or simulates find known prefixes again."""


@schema
class SignalSettings:
    """How often the law runs, and how its level reaches the application."""

    period_s: Positive
    """Seconds between two runs of the law (ours)."""
    delivery: Literal["header", "poll"]
    """`header`: on every response; `poll`: GET /bellman/congestion."""
    poll_period_s: Positive
    delay_s: NotNegative = 0.0
    """How much later than the response that carries it a level reaches the application."""
    loss: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the responses whose level never does."""
    listening: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the requests that act on it; the others ask as without a signal."""


@dataclass(frozen=True)
class EpisodeSettings:
    """What one episode needs, validated. Variants are what their YAML's `_target_` names."""

    seed: int
    arm: Arm
    signal: SignalSettings
    application: BudgetRules
    pacing: PacingLimits
    corpus: Any
    arrivals: Any
    load_model: Any
    engine: Any
    energy: Any
    timeline_period_s: float
    drain_s: float
    request_timeout_s: float


@dataclass(frozen=True)
class Settings:
    """The whole configuration, validated."""

    config: DictConfig
    """The configuration as it was composed: a grid changes entries of it."""
    values: Mapping[str, Any]
    """The same, resolved to plain values."""
    run: RunSettings
    application: BudgetRules
    capacity: CapacitySettings
    slo: Slo
    arms: Mapping[str, Arm]
    corpus: Any
    arrivals: Any
    engine: Any
    quality: Any
    study: Any
    executor: Any

    def episode_values(self, arm: str) -> dict[str, Any]:
        """Return the entries that shape the records of an episode under `arm`.

        An arm's own engine stands in the place of the run's.
        """
        parts = dict(self.values["arms"][arm])
        engine = {"engine": parts.pop("engine")} if "engine" in parts else {}
        return {key: self.values[key] for key in EPISODE_KEYS} | engine | {"arm": parts}


def read_settings(config: DictConfig) -> Settings:
    """Build and validate everything that the configuration names; raises `ConfigError`."""
    resolved = OmegaConf.to_container(config, resolve=True)
    assert isinstance(resolved, dict)
    values: dict[str, Any] = {str(key): value for key, value in resolved.items()}
    own = {key: value for key, value in values.items() if key in RunSettings.__dataclass_fields__}
    run = build_class(RunSettings, own, "")
    arms = values.get("arms")
    named = isinstance(arms, dict) and len(arms) > 0
    require(named, "arms", arms, "must be a mapping of arms: choose them by arm=[none,bellman]")
    assert isinstance(arms, dict)
    for name in arms:
        valid = bool(ARM_NAME.fullmatch(str(name)))
        require(valid, f"arms.{name}", name, "must be named by letters, digits, _ + . and -")
    require(run.baseline in arms, "baseline", run.baseline, f"must be one of {', '.join(arms)}")
    episode = read_episode(values, run.baseline, arms[run.baseline])
    for name, parts in arms.items():
        if isinstance(parts, Mapping) and "engine" in parts:
            check_own_engine(parts["engine"], f"arms.{name}.engine", episode.engine)
    return Settings(
        config=config,
        values=values,
        run=run,
        application=episode.application,
        capacity=build_class(CapacitySettings, values["capacity"], "capacity"),
        slo=build_class(Slo, values["slo"], "slo"),
        arms={name: read_arm(name, arms[name], episode.signal.period_s) for name in arms},
        corpus=episode.corpus,
        arrivals=episode.arrivals,
        engine=episode.engine,
        quality=build(values["quality"], "quality"),
        study=build(values["study"], "study"),
        executor=build(values["executor"], "executor"),
    )


def read_episode(values: Mapping[str, Any], name: str, arm: Any) -> EpisodeSettings:
    """Build what an episode under the arm `name` needs; raises `ConfigError`."""
    signal = build_class(SignalSettings, values["signal"], "signal")
    return EpisodeSettings(
        seed=values["seed"],
        arm=read_arm(name, arm, signal.period_s),
        signal=signal,
        application=build_class(BudgetRules, values["application"], "application"),
        pacing=build_class(PacingLimits, values["pacing"], "pacing"),
        corpus=build(values["corpus"], "corpus"),
        arrivals=build(values["arrivals"], "arrivals"),
        load_model=build(values["load_model"], "load_model"),
        engine=build(values["engine"], "engine"),
        energy=build(values["energy"], "energy"),
        timeline_period_s=values["timeline_period_s"],
        drain_s=values["drain_s"],
        request_timeout_s=values["request_timeout_s"],
    )


PARTS = ("controller", "adaptation", "admission")
OPTIONAL_PARTS = ("period_s", "client", "engine")
"""Without them the law has the run's period, a client gives up, requests go to the run's engine."""


@schema
class ArmPeriod:
    """The control period of one arm."""

    period_s: Positive
    """Seconds between two runs of the law; `signal.period_s` where the arm names none."""


def read_arm(name: str, values: Any, period_s: float) -> Arm:
    """Build one arm from its parts, all but an engine of its own; raises `ConfigError`."""
    key = f"arms.{name}"
    require(isinstance(values, Mapping), key, values, f"must be a mapping with {', '.join(PARTS)}")
    for entry in values:
        known = (*PARTS, *OPTIONAL_PARTS)
        unknown = f"unknown key, known are {', '.join(known)}"
        require(entry in known, f"{key}.{entry}", values[entry], unknown)
    period = build_class(ArmPeriod, {"period_s": values.get("period_s", period_s)}, key)
    adaptation = values.get("adaptation")
    calibrated = False
    if isinstance(adaptation, Mapping):
        calibrated = bool(adaptation.get("calibrated", False))
        adaptation = {entry: adaptation[entry] for entry in adaptation if entry != "calibrated"}
    return Arm(
        name=name,
        control=Control(
            build(values.get("controller"), f"{key}.controller"),
            build(values.get("admission"), f"{key}.admission"),
            period.period_s,
        ),
        adaptation=build(adaptation, f"{key}.adaptation"),
        calibrated=calibrated,
        client=build(values["client"], f"{key}.client") if "client" in values else GIVE_UP,
    )


def check_own_engine(values: Any, key: str, engine: Any) -> None:
    """Refuse an arm's own engine that is not of the run's kind, simulated or measured."""
    source = build(values, key).source
    of_a_kind = f"is {source}: must be {engine.source}, as the run's engine is"
    require(source == engine.source, key, values.get("_target_"), of_a_kind)


def identity_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the resolved configuration without the entries of `PLACE_KEYS`: what the run is."""
    return {str(key): value for key, value in values.items() if key not in PLACE_KEYS}
