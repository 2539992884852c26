"""The whole configuration, built and validated before anything runs."""

from dataclasses import dataclass, replace
from typing import Any

from omegaconf import DictConfig, OmegaConf

from bellman.admission.accept_all import AcceptAll
from bellman.app.budget import BudgetRules
from bellman.build import build, build_class
from bellman.controllers.none import NoControl
from bellman.engines.base import Control
from bellman.episode import Arm
from bellman.errors import require
from bellman.load.pacing import PacingLimits
from bellman.load.saturation import CapacitySettings
from bellman.slo import Slo

PATH_KEYS = ("outputs", "folder")
"""Where a run is written does not change what it is: left out of its identity."""


@dataclass(frozen=True)
class RunSettings:
    """The experiment's own numbers; keys stand at the configuration's top level."""

    name: str
    """Name of the experiment: the folder under `outputs`."""
    procedure: str
    """The function that runs it and leaves its records, `experiments.<file>.<function>`."""
    presentation: str
    """The function that shows them from the folder alone, `analysis.<file>.<function>`."""
    seed: int
    repeats: int
    timeline_period_s: float
    drain_s: float
    """How long after the schedule's end the outstanding requests may finish."""
    request_timeout_s: float
    """Deadline of a request, from its actual send."""
    outputs: str
    folder: str | None = None
    """The run's folder, instead of `<outputs>/<name>/<run id>`."""
    model: str | None = None
    """Model name or folder, for engines that load one."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.seed >= 0, "seed", self.seed, "must be 0 or more")
        require(self.repeats >= 1, "repeats", self.repeats, "must be 1 or more")
        require(
            self.timeline_period_s > 0,
            "timeline_period_s",
            self.timeline_period_s,
            "must be greater than 0",
        )
        require(self.drain_s >= 0, "drain_s", self.drain_s, "must be 0 or more")
        require(
            self.request_timeout_s > 0,
            "request_timeout_s",
            self.request_timeout_s,
            "must be greater than 0",
        )


@dataclass(frozen=True)
class SignalSettings:
    """How often the law runs, and how its level reaches the application."""

    period_s: float
    """Seconds between two runs of the law (ours)."""
    delivery: str
    """`header`: on every response; `poll`: GET /bellman/congestion."""
    poll_period_s: float

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.period_s > 0, "signal.period_s", self.period_s, "must be greater than 0")
        require(
            self.delivery in {"header", "poll"},
            "signal.delivery",
            self.delivery,
            "must be header or poll",
        )
        require(
            self.poll_period_s > 0,
            "signal.poll_period_s",
            self.poll_period_s,
            "must be greater than 0",
        )


@dataclass(frozen=True)
class Settings:
    """Everything a procedure needs, validated. Variants are what their YAML's `_target_` names."""

    run: RunSettings
    signal: SignalSettings
    application: BudgetRules
    capacity: CapacitySettings
    pacing: PacingLimits
    slo: Slo
    baseline: Arm
    treatment: Arm
    corpus: Any
    arrivals: Any
    load_model: Any
    engine: Any
    energy: Any
    quality: Any
    study: Any
    """What the procedure itself is told, where it takes more than the above; else None."""

    @property
    def uncontrolled(self) -> Arm:
        """Whose capacity is measured, whatever the baseline is."""
        control = Control(NoControl(), AcceptAll(), self.signal.period_s)
        return Arm("none", control, self.baseline.adaptation)

    @property
    def arms(self) -> tuple[Arm, Arm]:
        """The baseline first."""
        return (self.baseline, self.treatment)


def read_settings(config: DictConfig) -> Settings:
    """Build and validate everything that the configuration names; raises `ConfigError`."""
    values = OmegaConf.to_container(config, resolve=True)
    assert isinstance(values, dict)
    own = {key: value for key, value in values.items() if key in RunSettings.__dataclass_fields__}
    signal = build_class(SignalSettings, values["signal"], "signal")
    baseline = read_arm(config.baseline, signal.period_s, "baseline.")
    treatment = read_arm(config, signal.period_s, "")
    if treatment.name == baseline.name:
        treatment = replace(treatment, name=f"{treatment.name} {difference(treatment, baseline)}")
    return Settings(
        run=build_class(RunSettings, own, ""),
        signal=signal,
        application=build_class(BudgetRules, values["application"], "application"),
        capacity=build_class(CapacitySettings, values["capacity"], "capacity"),
        pacing=build_class(PacingLimits, values["pacing"], "pacing"),
        slo=build_class(Slo, values["slo"], "slo"),
        baseline=baseline,
        treatment=treatment,
        corpus=build(config.corpus, "corpus"),
        arrivals=build(config.arrivals, "arrivals"),
        load_model=build(config.load_model, "load_model"),
        engine=build(config.engine, "engine"),
        energy=build(config.energy, "energy"),
        quality=build(config.quality, "quality"),
        study=build(config.study, "study") if config.study is not None else None,
    )


def difference(treatment: Arm, baseline: Arm) -> str:
    """Say in a word how an arm differs from one with the same law and admission."""
    if treatment == baseline:
        return "again"
    if treatment.adaptation.name != baseline.adaptation.name:
        return treatment.adaptation.name
    return "changed"


def read_arm(node: DictConfig, period_s: float, prefix: str) -> Arm:
    """Build the arm that `node.controller`, `node.adaptation` and `node.admission` describe."""
    controller = build(node.controller, f"{prefix}controller")
    admission = build(node.admission, f"{prefix}admission")
    adaptation = node.adaptation
    calibrated = False
    if isinstance(adaptation, DictConfig):
        values = OmegaConf.to_container(adaptation, resolve=True)
        assert isinstance(values, dict)
        calibrated = bool(values.pop("calibrated", False))
        adaptation = OmegaConf.create(values)
    names = [controller.name, admission.name]
    if controller.name == "none" and admission.name:
        names = [admission.name]
    return Arm(
        name="+".join(name for name in names if name),
        control=Control(controller, admission, period_s),
        adaptation=build(adaptation, f"{prefix}adaptation"),
        calibrated=calibrated,
    )


def identity_values(config: DictConfig) -> dict[str, Any]:
    """Return the resolved configuration without output paths: the part that makes the run."""
    values = OmegaConf.to_container(config, resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items() if key not in PATH_KEYS}
