"""experiment=capacity, whole and small, in virtual time."""

import io
import json

import pandas as pd
import pytest
from rich.console import Console

from analysis.plan import read_plan
from analysis.present import main as present_again
from bellman.errors import ConfigError, RunError
from experiments.execute import execute
from tests.experiments.conftest import read_config

pytestmark = pytest.mark.slow

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


QUIET = Console(quiet=True)


def run(*overrides, console=QUIET, draw=True):
    return execute(read_config(*overrides), console, draw=draw)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(*SMALL, f"outputs={tmp_path_factory.mktemp('outputs')}")


def test_the_study_has_every_step_with_both_arms(folder):
    found = json.loads((folder / "result.json").read_text())
    assert found["source"] == "simulated"
    assert found["prefix_caching"] == "off"
    assert set(found["arms"]) == {"none", "bellman"}
    for arm in found["arms"].values():
        clients = [point["clients"] for point in arm["closed"]]
        assert clients == [1, 2, 4]
        rates = [point["rate_rps"] / found["capacity_rps"] for point in arm["open"]]
        assert rates == pytest.approx([0.5, 1.0, 1.25, 1.5625])
    assert found["invalid_points"] == []
    # Four clients' capacity is so little that every rate tried is served well: only a bound.
    assert all(arm["no_limit_found"] for arm in found["arms"].values())
    assert [row["scale"] for row in found["slo_scales"]] == [1.0, 2.0]
    assert found["slo_scales"][1]["slo"] == {"ttft_s": 4.0, "tpot_s": 0.2, "e2e_s": 40.0}
    assert found["capacity_rps"] == found["arms"]["none"]["closed"][-1]["throughput_rps"]
    assert found["capacity_clients"] == 4


def test_the_plan_and_the_frames_tell_the_points_apart(folder):
    axes = [cell.axes for cell in read_plan(folder)]
    assert axes[:6] == [{"step": "closed", "clients": n} for n in (1, 1, 2, 2, 4, 4)]
    assert all(set(where) == {"step", "rate_rps"} for where in axes[6:])
    frame = pd.read_parquet(folder / "requests.parquet")
    assert set(frame["clients"].dropna()) == {1, 2, 4}
    assert frame.groupby("episode_id")[["step", "clients", "rate_rps"]].nunique().max().max() == 1


def test_the_same_command_finds_all_points_done(folder):
    before = {file: file.stat().st_mtime_ns for file in (folder / "episodes").rglob("*")}
    output = io.StringIO()
    outputs = folder.parents[1]
    assert run(*SMALL, f"outputs={outputs}", console=Console(file=output, width=200)) == folder
    assert "finished; shown again" in output.getvalue()
    after = {file: file.stat().st_mtime_ns for file in (folder / "episodes").rglob("*")}
    assert after == before


def test_littles_law_holds_within_two_percent(folder):
    found = json.loads((folder / "result.json").read_text())
    assert found["littles_law"]["holds"] is True
    for arm in found["arms"].values():
        for point in arm["closed"]:
            assert point["outstanding"] == pytest.approx(point["clients"], rel=0.05)
            assert abs(point["littles_error"]) <= 0.02


def test_below_saturation_everybody_is_served_well_by_both_arms_alike(folder):
    arms = json.loads((folder / "result.json").read_text())["arms"]
    assert arms["none"]["open"] == [point | {"arm": "none"} for point in arms["bellman"]["open"]]
    assert all(point["slo_attainment"] == 1.0 for point in arms["none"]["open"])


def test_tables_and_figures_come_from_the_records_alone(folder, capsys):
    names = {
        f"capacity_{name}.{end}"
        for name in ("closed_loop", "slo", "slo_scale", "offered")
        for end in ("pdf", "png", "txt")
    }
    before = json.loads((folder / "result.json").read_text())
    for path in (folder / "figures").iterdir():
        path.unlink()
    (folder / "result.json").unlink()
    assert present_again([str(folder)]) == 0
    assert {path.name for path in (folder / "figures").iterdir()} == names
    assert json.loads((folder / "result.json").read_text()) == before
    shown = capsys.readouterr().out
    assert "not what users wait" in shown
    assert "(simulated)" in shown
    assert "prefix caching off" in shown
    assert "Prefix caching off." in (folder / "figures" / "capacity_slo.txt").read_text()
    assert "what bellman adds: n/a, no limit was found for none" in shown


def test_a_test_too_short_for_an_answer_is_repeated_until_there_are_enough(folder, tmp_path):
    """An answer takes about 4 s: of a second's test nothing is in time."""
    short = run(
        *SMALL,
        "study.clients_limit=2",
        "study.closed_warmup_s=0",
        "study.closed_test_s=1",
        f"outputs={tmp_path}",
        draw=False,
    )
    tests = [cell.axes for cell in read_plan(short) if cell.axes["step"] == "closed"]
    assert len(tests) > 2 * len({test["clients"] for test in tests})
    results = [json.loads((at / "result.json").read_text()) for at in (short, folder)]
    found, known = (
        {point["clients"]: point for point in result["arms"]["none"]["closed"]}
        for result in results
    )
    assert sorted(found) == [1, 2]
    for clients, point in found.items():
        assert point["completed"] >= 20
        assert point["throughput_rps"] == pytest.approx(known[clients]["throughput_rps"], rel=0.15)
        assert point["low_rps"] < point["throughput_rps"] < point["high_rps"]


def test_a_deadline_too_early_for_enough_answers_is_one_line_with_its_key(tmp_path):
    with pytest.raises(
        RunError, match=r"^study\.closed_deadline_s=12: 1 clients under none had only \d answers"
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
        ("study.loads=[0.5,-1]", "study.loads.1"),
        ("study.slo_attainment=1.5", "study.slo_attainment"),
        ("study.load_limit=0.5", "study.load_limit"),
        ("study.closed_test_s=0", "study.closed_test_s"),
        ("study.closed_completions=0", "study.closed_completions"),
        ("study.closed_deadline_s=100", "study.closed_deadline_s"),
        ("study.slo_scales=[2.0]", "study.slo_scales"),
        ("study.slo_scales=[1.0,0.0]", "study.slo_scales.1"),
        ("study.slo_scales=[1.0,.nan]", "study.slo_scales.1"),
        ("slo.e2e_s=0", "slo.e2e_s"),
    ],
)
def test_a_wrong_value_stops_before_anything_runs(override, key, tmp_path):
    with pytest.raises(ConfigError, match=f"^{key}="):
        run("experiment=capacity", override, f"outputs={tmp_path}")
    assert not list(tmp_path.iterdir())
