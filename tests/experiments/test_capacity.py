"""experiment=capacity, whole and small, in virtual time."""

import json
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from rich.console import Console

from analysis.capacity.__main__ import main as present_again
from bellman.errors import ConfigError, RunError
from experiments.execute import execute

CONF = Path(__file__).parents[2] / "conf"
SMALL = (
    "experiment=capacity",
    "corpus.limit_documents=12",
    "study.clients_limit=4",
    "study.closed_warmup_s=10",
    "study.closed_test_s=240",
    "study.loads=[0.5,1.0]",
    "study.open_warmup_s=10",
    "study.open_test_s=40",
    "study.resolution=0.1",
    "study.load_limit=1.6",
    "study.slo_scales=[1.0,2.0]",
)


def run(*overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return execute(compose("config", overrides=list(overrides)), Console(quiet=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(*SMALL, f"outputs={tmp_path_factory.mktemp('outputs')}")


def test_the_study_has_every_step_with_both_arms(folder):
    study = json.loads((folder / "study.json").read_text())
    assert study["source"] == "simulated"
    assert set(study["arms"]) == {"none", "bellman"}
    for arm in study["arms"].values():
        clients = [point["clients"] for point in arm["closed"]]
        assert clients == [1, 2, 4]
        rates = [point["rate_rps"] / study["capacity_rps"] for point in arm["open"]]
        assert rates == pytest.approx([0.5, 1.0, 1.25, 1.5625])
    assert study["invalid_points"] == []
    # Four clients' capacity is so little that every rate tried is served well: only a bound.
    assert all(arm["no_limit_found"] for arm in study["arms"].values())
    assert [row["scale"] for row in study["slo_scales"]] == [1.0, 2.0]
    assert study["slo_scales"][1]["slo"] == {"ttft_s": 4.0, "tpot_s": 0.2, "e2e_s": 40.0}
    capacity = json.loads((folder / "capacity.json").read_text())
    assert capacity["capacity_rps"] == study["capacity_rps"]
    assert capacity["concurrency"] == 4


def test_littles_law_holds_within_two_percent(folder):
    study = json.loads((folder / "study.json").read_text())
    assert study["littles_law"]["holds"] is True
    for arm in study["arms"].values():
        for point in arm["closed"]:
            assert point["outstanding"] == pytest.approx(point["clients"], rel=0.05)
            assert abs(point["littles_error"]) <= 0.02


def test_below_saturation_everybody_is_served_well_by_both_arms_alike(folder):
    arms = json.loads((folder / "study.json").read_text())["arms"]
    assert arms["none"]["open"] == [point | {"arm": "none"} for point in arms["bellman"]["open"]]
    assert all(point["good_fraction"] == 1.0 for point in arms["none"]["open"])


def test_tables_and_figures_come_from_the_records_alone(folder, capsys):
    names = {
        f"capacity_{name}.{end}"
        for name in ("closed_loop", "slo", "slo_scale", "offered")
        for end in ("pdf", "png")
    }
    before = json.loads((folder / "study.json").read_text())
    for path in (folder / "figures").iterdir():
        path.unlink()
    (folder / "study.json").unlink()
    assert present_again([str(folder)]) == 0
    assert {path.name for path in (folder / "figures").iterdir()} == names
    assert json.loads((folder / "study.json").read_text()) == before
    shown = capsys.readouterr().out
    assert "not what users wait" in shown
    assert "(simulated)" in shown
    assert "what bellman adds: n/a, no limit was found for none" in shown


def test_a_test_too_short_for_an_answer_is_repeated_until_there_are_enough(folder, tmp_path):
    """An answer takes about 4 s: of a second's test nothing is in time."""
    short = run(
        *SMALL,
        "study.clients_limit=2",
        "study.closed_warmup_s=0",
        "study.closed_test_s=1",
        f"outputs={tmp_path}",
    )
    episodes = json.loads((short / "episodes.json").read_text())
    tests = [e for e in episodes if e["step"] == "closed" and e["arm"] == "none"]
    assert len(tests) > len({test["clients"] for test in tests})
    found, known = (
        {point["clients"]: point for point in study["arms"]["none"]["closed"]}
        for study in (json.loads((at / "study.json").read_text()) for at in (short, folder))
    )
    assert sorted(found) == [1, 2]
    for clients, point in found.items():
        assert point["completed"] >= 20
        assert point["throughput_rps"] == pytest.approx(known[clients]["throughput_rps"], rel=0.15)
    capacity = json.loads((short / "capacity.json").read_text())
    assert capacity["low_rps"] < capacity["capacity_rps"] < capacity["high_rps"]


def test_a_deadline_too_early_for_enough_answers_is_one_line_with_its_key(tmp_path):
    with pytest.raises(
        RunError, match=r"^study\.closed_deadline_s=12: 1 clients had only \d answers in a test"
    ):
        run(
            *SMALL,
            "study.closed_warmup_s=0",
            "study.closed_test_s=10",
            "study.closed_deadline_s=12",
            f"outputs={tmp_path}",
        )


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("study.loads=[]", "study.loads"),
        ("study.loads=[0.5,-1]", "study.loads"),
        ("study.good_fraction=1.5", "study.good_fraction"),
        ("study.load_limit=0.5", "study.load_limit"),
        ("study.closed_test_s=0", "study.closed_test_s"),
        ("study.closed_completions=0", "study.closed_completions"),
        ("study.closed_deadline_s=100", "study.closed_deadline_s"),
        ("study.slo_scales=[2.0]", "study.slo_scales"),
        ("study.slo_scales=[1.0,0.0]", "study.slo_scales"),
        ("study.slo_scales=[1.0,.nan]", "study.slo_scales"),
        ("slo.e2e_s=0", "slo.e2e_s"),
    ],
)
def test_a_wrong_value_stops_before_anything_runs(override, key, tmp_path):
    with pytest.raises(ConfigError, match=f"^{key}="):
        run("experiment=capacity", override, f"outputs={tmp_path}")
    assert not list(tmp_path.iterdir())
