"""Delay, adopters and sensor faults in whole runs, and the study that sweeps them."""

import json

import pandas as pd
import pytest
from omegaconf import OmegaConf
from rich.console import Console

from analysis.present import present
from analysis.sensitivity.classes import jain
from bellman.signal_path import listens
from experiments.execute import execute
from tests.experiments.conftest import TINY, read_config

CONGESTED = (
    *(entry for entry in TINY if "repeats" not in entry),
    *("repeats=1", "executor=serial", "arrivals.overload=3", "arrivals.calm_s=10"),
    *("arrivals.recovery_s=5", "congestion.q_low=2", "congestion.q_high=20"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """As it is, half of the requests listening, the level 4 s late, half of the readings failed."""
    folder = tmp_path_factory.mktemp("run") / "study"
    config = read_config("experiment=adopters", *CONGESTED, f"folder={folder}")
    config.study.grids = OmegaConf.create(
        {
            "listening": {"signal.listening": [0.5, 1.0]},
            "delay": {"signal.delay_s": [0.0, 4.0]},
            "faults": {"engine.sensor_missing": [0.0, 0.5]},
        }
    )
    config.study.quantities = ["slo_attainment", "words_listening", "fairness_words"]
    return execute(config, Console(quiet=True), draw=False)


def requests_at(folder, **axes) -> pd.DataFrame:
    rows = pd.read_parquet(folder / "requests.parquet")
    rows = rows[rows["arm"] == "bellman"]
    for name, value in axes.items():
        rows = rows[rows[f"signal.{name}"] == value]
    return rows


def test_half_of_the_requests_listen_and_the_others_ask_as_without_a_signal(folder):
    rows = requests_at(folder, listening=0.5)
    chosen = rows["request_id"].map(lambda number: listens(int(number), 0.5, 1))
    assert 0.3 < chosen.mean() < 0.7
    assert rows.loc[~chosen, "level"].isna().all()
    assert (rows.loc[~chosen, "word_budget"] == 300).all()
    later = chosen & (rows["intended_s"] > 1.0)
    assert rows.loc[later, "level"].notna().all()
    assert rows.loc[later, "word_budget"].min() < 300


def test_a_late_level_is_that_of_the_delay_before(folder):
    rows = requests_at(folder, delay_s=4.0)
    first_s = rows["intended_s"].min()
    assert rows.loc[rows["intended_s"] < first_s + 4.0, "level"].isna().all()
    known = rows[rows["level"].notna()]
    assert known["intended_s"].min() >= first_s + 4.0
    ticks = pd.read_parquet(folder / "timeline.parquet")
    ticks = ticks[(ticks["arm"] == "bellman") & (ticks["signal.delay_s"] == 4.0)]
    for row in known.itertuples():
        # The header of a response sent at `intended - age - delay` carried the level of its time.
        sent_s = row.intended_s - row.level_age_s - 4.0
        around = ticks[(ticks["time_s"] - sent_s).abs() <= 1.01]["level"]
        assert around.min() - 1e-3 <= row.level <= around.max() + 1e-3


def test_the_study_shows_every_arm_at_every_point_and_what_has_no_meaning_as_none(folder):
    found = json.loads((folder / "sensitivity.json").read_text())
    assert found["source"] == "simulated"
    assert found["prefix_caching"] == "off"
    by_axes = {json.dumps(point["axes"]): point for point in found["points"]}
    assert len(by_axes) == 7
    half = {one["arm"]: one for one in by_axes['{"signal.listening": 0.5}']["arms"]}
    assert half["bellman"]["words_listening"] < half["bellman"]["words_others"]
    assert half["none"]["words_listening"] == pytest.approx(half["none"]["words_others"], rel=0.2)
    assert 0.5 < half["bellman"]["fairness_words"] < half["none"]["fairness_words"] <= 1.0
    whole = by_axes['{"signal.listening": 1.0}']["arms"]
    assert all(one["fairness_words"] is None for one in whole)
    console = Console(record=True, width=120)
    present(folder, console, make=False)
    assert "listening (simulated)" in console.export_text()


def test_a_sensor_that_fails_costs_levels_and_ends_no_run(folder):
    def levels(missing: float) -> pd.Series:
        ticks = pd.read_parquet(folder / "timeline.parquet")
        rows = ticks[(ticks["arm"] == "bellman") & (ticks["engine.sensor_missing"] == missing)]
        return rows["level"]

    assert not levels(0.0).isna().any()
    assert 0.2 < levels(0.5).isna().mean() < 0.8
    rows = pd.read_parquet(folder / "requests.parquet")
    assert (rows.loc[rows["engine.sensor_missing"] == 0.5, "status"] == "ok").all()


@pytest.mark.parametrize(
    ("shares", "index"),
    [
        ([1.0, 1.0], 1.0),
        ([1.0, 0.0], 0.5),
        ([3.0, 1.0], 0.8),
        ([0.0, 0.0], None),
        ([1, None], None),
    ],
)
def test_jains_index_of_known_shares(shares, index):
    assert jain(shares) == (None if index is None else pytest.approx(index))
