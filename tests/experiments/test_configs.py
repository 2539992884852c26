"""Every configuration composes and is valid; every mistake is one clear line."""

from pathlib import Path

import pytest
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from bellman.errors import ConfigError, RunError
from bellman.settings import read_settings
from experiments.execute import prepare
from experiments.messages import one_line
from tests.experiments.conftest import CONF, read_config

NEEDS = {
    "arrivals/servegen": [f"arrivals.path={Path(__file__).parent}"],
    "arrivals/trace": [f"arrivals.path={__file__}"],
    "arrivals/trace_azure": [f"arrivals.path={__file__}"],
    "arrivals/trace_burstgpt": [f"arrivals.path={__file__}"],
    "arrivals/trace_mooncake": [f"arrivals.path={__file__}"],
    "corpus/jsonl": [f"corpus.path={__file__}"],
    "engine/bank/recorded": [f"engine.bank.path={__file__}"],
    "engine/openai": ["engine.base_url=http://127.0.0.1:8000"],
    "engine/vllm": ["model=owner/name"],
    "engine/vllm_cpu": ["model=owner/name"],
}
"""Entries that a variant cannot do without."""


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


VARIANTS = [
    (group, option)
    for group in (
        "adaptation",
        "admission",
        "arrivals",
        "controller",
        "corpus",
        "energy",
        "engine",
        "engine/bank",
        "engine/profile",
        "load_model",
        "quality",
    )
    for option in options(group)
]


@pytest.mark.parametrize("experiment", options("experiment"))
def test_every_experiment_is_valid(experiment):
    settings = read_settings(read_config(f"experiment={experiment}"))
    assert settings.run.name == experiment


@pytest.mark.parametrize(("group", "option"), VARIANTS)
def test_every_variant_is_valid(group, option):
    needed = NEEDS.get(f"{group}/{option}", [])
    read_settings(read_config(f"{group}={option}", *needed))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("controller.q_low=-1", "controller.q_low=-1.0: must be 0 or more"),
        ("controller.q_high=10", "controller.q_high=10.0: must be greater than"),
        ("controller.max_step=fast", "controller.max_step=fast: Value 'fast'"),
        ("adaptation.alpha_min=1.5", "adaptation.alpha_min=1.5: must be in (0, 1]"),
        ("baseline.adaptation.alpha_min=0", "baseline.adaptation.alpha_min=0.0: must be in (0"),
        ("arrivals.overload=-1", "arrivals.overload=-1.0: must be greater than 0"),
        ("arrivals.congested_s=0", "arrivals.congested_s=0.0: must be greater than 0"),
        ("arrivals.capacity_rps=-3", "arrivals.capacity_rps=-3.0"),
        ("arrivals.process=regular", "arrivals.process=regular"),
        ("repeats=0", "repeats=0: must be 1 or more"),
        ("repeats=two", "repeats=two: Value 'two'"),
        ("seed=-1", "seed=-1: must be 0 or more"),
        ("signal.period_s=0", "signal.period_s=0.0: must be greater than 0"),
        ("signal.delivery=pigeon", "signal.delivery=pigeon: must be header or poll"),
        ("capacity.duration_s=0", "capacity.duration_s=0.0: must be greater than 0"),
        ("engine.kv_blocks=0", "engine.kv_blocks=0"),
        ("corpus.limit_documents=0", "corpus.limit_documents=0"),
        ("application.task=poem", "application.task=poem: must be one of summary, answer"),
        ("controller.q_lw=20", "controller.q_lw=20: unknown key of controller, known are q_low"),
        ("controler=none", "controler=none: unknown key, known are engine, corpus"),
        ("controller=pidd", "In 'config': Could not find 'controller/pidd' Available options"),
        ("arrivals.overload=[", "arrivals.overload=[: no viable alternative"),
    ],
)
def test_a_mistake_is_one_line_with_key_and_value(override, message):
    with pytest.raises((ConfigError, HydraException, OmegaConfBaseException)) as caught:
        read_settings(read_config(override))
    line = one_line(caught.value, [override])
    assert line.startswith(message)
    assert "\n" not in line


@pytest.mark.parametrize(
    ("override", "start"),
    [
        ("controller=null", "Config group override must be a string"),
        ("baseline.controller=bellman", "baseline.controller=bellman: must be one of"),
        ("engine.bank=foo", "engine.bank=foo: a variant is chosen by engine/bank=..., known are"),
        ("engine.profile=foo", "engine.profile=foo: a variant is chosen by engine/profile=..."),
        ("signal=null", "signal=None: must be a mapping with period_s"),
        ("application=3", "application=3: must be a mapping with"),
        ("controller._target_=foo.Bar", "controller._target_=foo.Bar: must be a dotted path"),
        ("procedure=experiments.nothing", "procedure=experiments.nothing: must be a dotted path"),
        ("arrivals.overload=inf", "arrivals.overload=inf: must be a finite number"),
        ("baseline.adaptation.alpha_min=2", "baseline.adaptation.alpha_min=2.0: must be in (0, 1]"),
        ("adaptation.calibrated=true", "adaptation.calibrated=True: needs a recorded"),
        ("corpus=jsonl", "corpus.path"),
    ],
)
def test_a_mistake_is_found_before_anything_runs(override, start, tmp_path):
    extractive = "engine/bank=extractive"
    mistakes = (ConfigError, RunError, HydraException, OmegaConfBaseException, ValueError)
    with pytest.raises(mistakes) as caught:
        prepare(read_config(extractive, f"outputs={tmp_path}", override))
    line = one_line(caught.value, [override])
    assert line.startswith(start)
    assert "\n" not in line
    assert not list(tmp_path.iterdir())


def test_a_mapping_under_a_group_is_not_taken_for_a_variants_name():
    overrides = ["engine/bank=recorded", "engine.bank={path: my.parquet}", "controller.q_lw=20"]
    with pytest.raises((ConfigError, HydraException, OmegaConfBaseException)) as caught:
        read_settings(read_config(*overrides))
    assert one_line(caught.value, overrides).startswith("controller.q_lw=20: unknown key")
