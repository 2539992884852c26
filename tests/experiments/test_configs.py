"""Every configuration composes and is valid; every mistake is one clear line."""

import importlib.util
from pathlib import Path

import pytest
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from bellman.errors import ConfigError, RunError
from bellman.settings import read_settings
from experiments.execute import prepare
from experiments.messages import one_line
from tests.experiments.conftest import CONF, read_config

LAW = "arms.bellman.controller"
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
        "arrivals",
        "corpus",
        "energy",
        "executor",
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
    if option == "ray" and importlib.util.find_spec("ray") is None:
        with pytest.raises(ConfigError, match="executor=ray: needs the extra `ray`"):
            read_settings(read_config("executor=ray"))
        return
    read_settings(read_config(f"{group}={option}", *needed))


def test_every_arm_is_valid():
    """Each is built by itself; `test_every_arm` runs them."""
    arms = options("arm")
    settings = read_settings(read_config(f"arm=[{','.join(arms)}]"))
    assert set(settings.arms) == set(arms)


REFUSES = "refuses requests: frontier is of the arms that shorten alone"
ARMS_LEFT_OUT: dict[str, dict[str, str]] = {
    "arms": {},
    "kick_the_tires": {},
    "frontier": {
        "concise": "the extractive stand-in has no answer to it",
        **dict.fromkeys(("queue_limit", "shed", "gradient_limit", "breaker"), REFUSES),
        **dict.fromkeys(("tpm", "tpm_retry", "bellman_tpm"), REFUSES),
        **dict.fromkeys(("spillover", "bellman_spillover"), REFUSES),
    },
}
"""Arms that an experiment of all arms does not have, with the reason."""


@pytest.mark.parametrize("experiment", ARMS_LEFT_OUT)
def test_an_experiment_of_all_arms_has_every_arm_but_those_left_out_for_a_reason(experiment):
    listed = list(read_settings(read_config(f"experiment={experiment}")).arms)
    left_out = ARMS_LEFT_OUT[experiment].keys()
    assert sorted(listed) == sorted(set(options("arm")) - left_out)


@pytest.mark.parametrize("part", ["adaptation", "admission"])
def test_every_part_of_an_arm_is_valid(part):
    for option in options(part):
        read_settings(read_config(f"{part}@arms.bellman.{part}={option}"))


def test_every_client_is_valid():
    for option in options("client"):
        read_settings(read_config(f"+client@arms.bellman.client={option}"))


def test_an_arms_own_engine_is_of_the_runs_kind():
    config = read_config("arm=[none,spillover]", "engine=openai", "engine.base_url=http://a:1")
    engines = read_settings(config).episode_values("spillover")["engine"]["engines"]
    assert [engine["base_url"] for engine in engines.values()] == ["http://a:1", "http://a:1"]
    url = "{_target_: bellman.engines.openai.engine.OpenAIEngine, base_url: 'http://b:1'}"
    config = read_config("arm=[none,spillover]", f"arms.spillover.engine.engines.spare={url}")
    with pytest.raises(
        ConfigError, match=r"arms\.spillover\.engine\.engines\.spare=measured: must"
    ):
        read_settings(config)
    config = read_config(f"+arms.bellman.engine={url}")
    with pytest.raises(ConfigError, match=r"arms\.bellman\.engine=.*is measured: must be simulat"):
        read_settings(config)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            f"{LAW}.q_low=-1",
            f"{LAW}.q_low=-1: must be 0 or more",
        ),
        (
            f"{LAW}.q_high=10",
            f"{LAW}.q_high=10.0: must be greater than",
        ),
        (
            f"{LAW}.max_step=fast",
            f"{LAW}.max_step=fast: must be a finite number, in (0, 1]",
        ),
        ("congestion.alpha_min=1.5", "arms.none.adaptation.alpha_min=1.5: must be in (0, 1]"),
        ("arms.none.adaptation.alpha_min=0", "arms.none.adaptation.alpha_min=0: must be in (0"),
        ("baseline=bellmann", "baseline=bellmann: must be one of none, bellman"),
        ("arm=[bellman]", "baseline=none: must be one of bellman"),
        ("arm=[]", "arms=None: must be a mapping of arms: choose them by arm=[none,bellman]"),
        ("arrivals.overload=-1", "arrivals.overload=-1: must be greater than 0"),
        ("arrivals.congested_s=0", "arrivals.congested_s=0: must be greater than 0"),
        ("arrivals.capacity_rps=-3", "arrivals.capacity_rps=-3: must be greater than 0, or null"),
        (
            "arrivals.process=regular",
            "arrivals.process=regular: must be one of constant, ",
        ),
        ("repeats=0", "repeats=0: must be 1 or more"),
        ("repeats=two", "repeats=two: must be a whole number, 1 or more"),
        ("seed=-1", "seed=-1: must be 0 or more"),
        ("seed=true", "seed=True: must be a whole number, 0 or more"),
        (
            "arms.bellman.controller.q_low=true",
            "arms.bellman.controller.q_low=True: must be a",
        ),
        ("signal.period_s=0", "signal.period_s=0: must be greater than 0"),
        ("signal.delivery=pigeon", "signal.delivery=pigeon: must be header or poll"),
        ("capacity.duration_s=0", "capacity.duration_s=0: must be greater than 0"),
        ("engine.kv_blocks=0", "engine.kv_blocks=0: must be 1 or more"),
        ("corpus.limit_documents=0", "corpus.limit_documents=0: must be 1 or more, or null"),
        ("application.task=poem", "application.task=poem: must be one of summary, answer"),
        (
            f"{LAW}.q_lw=20",
            f"{LAW}.q_lw=20: unknown key of {LAW}, known are",
        ),
        ("+arms.bellman.period_s=0", "arms.bellman.period_s=0: must be greater than 0"),
        (
            "+arms.bellman.period=1",
            "arms.bellman.period=1: unknown key, known are controller, adaptation, admission, peri",
        ),
        ("controler=none", "controler=none: unknown key, known are engine, corpus"),
        ("arm=[none,pidd]", "arm=[none,pidd]: pidd must be one of aimd, bellman, bellman_knee"),
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
        ("arms.bellman.controller=none", "arms.bellman.controller=none: must be one of"),
        ("+arms.x={controller: 1}", "arms.x.controller=1: must be one of"),
        ("arms.bellman=null", "arms.bellman=None: must be a mapping with controller"),
        ("study=grid", "study.axes"),
        ("engine.bank=foo", "engine.bank=foo: a variant is chosen by engine/bank=..., known are"),
        ("engine.profile=foo", "engine.profile=foo: a variant is chosen by engine/profile=..."),
        ("signal=null", "signal=None: must be a mapping with period_s"),
        ("application=3", "application=3: must be a mapping with"),
        (
            f"{LAW}._target_=foo.Bar",
            f"{LAW}._target_=foo.Bar: must",
        ),
        ("study._target_=experiments.nothing", "study._target_=experiments.nothing: must be a"),
        ("arrivals.overload=inf", "arrivals.overload=inf: must be a finite number"),
        ("arms.none.adaptation.alpha_min=2", "arms.none.adaptation.alpha_min=2: must be in (0"),
        (
            "arms.bellman.adaptation.calibrated=true",
            "arms.bellman.adaptation.calibrated=True: needs",
        ),
        ("corpus=jsonl", "corpus.path=???: must be given"),
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


def test_an_arm_may_have_a_control_period_of_its_own():
    settings = read_settings(read_config("arm=[none,dimmer]", "signal.period_s=2"))
    assert [arm.control.period_s for arm in settings.arms.values()] == [2.0, 0.5]


def test_a_mapping_under_a_group_is_not_taken_for_a_variants_name():
    overrides = [
        "engine/bank=recorded",
        "engine.bank={path: my.parquet}",
        f"{LAW}.q_lw=20",
    ]
    with pytest.raises((ConfigError, HydraException, OmegaConfBaseException)) as caught:
        read_settings(read_config(*overrides))
    assert one_line(caught.value, overrides).startswith(f"{LAW}.q_lw=20: unknown key")
