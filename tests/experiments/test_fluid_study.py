"""The fluid study: a prediction beside each arm's episodes, and errors of known curves."""

import json

import numpy as np
import pytest
from rich.console import Console

from analysis.fluid.errors import error
from analysis.present import present
from bellman.errors import ConfigError
from experiments.execute import execute, prepare
from tests.experiments.conftest import TINY, read_config


def test_the_error_is_the_mean_distance_by_the_simulated_mean():
    simulated, fluid = np.array([10.0, 20.0, 30.0]), np.array([12.0, 20.0, 24.0])
    found = error(simulated, fluid, np.array([True, True, True]))
    assert found["error"] == pytest.approx((2 + 0 + 6) / 3 / 20)
    assert (found["simulated_mean"], found["largest"]) == (20.0, 30.0)
    assert error(simulated, fluid, np.array([False] * 3))["error"] is None


def test_every_arm_has_both_queues_and_the_errors_of_the_phases(tmp_path):
    config = read_config(
        "experiment=fluid",
        "executor=serial",
        "arm=[none,bellman]",
        *TINY,
        "repeats=1",
        "arrivals.congested_s=20",
        f"folder={tmp_path / 'run'}",
    )
    folder = execute(config, Console(quiet=True), draw=False)
    found = json.loads((folder / "fluid.json").read_text())
    assert found["source"] == "simulated"
    assert found["prefix_caching"] == "off"
    assert [arm["arm"] for arm in found["arms"]] == ["none", "bellman"]
    for arm in found["arms"]:
        lengths = {len(arm[name]) for name in ("time_s", "simulated", "fluid", "level")}
        assert lengths == {len(arm["time_s"])}
        assert set(arm["errors"]) == {"warmup", "calm", "congested", "recovery"}
        assert 0 < arm["errors"]["congested"]["error"] < 1
    console = Console(record=True, width=100)
    present(folder, console, make=False)
    assert "requests in the engine, fluid beside simulated" in console.export_text()


def test_an_arm_that_names_no_words_is_refused():
    with pytest.raises(ConfigError, match=r"arms\.cap\.adaptation=Cap.*: must ask for words"):
        prepare(read_config("experiment=fluid", "executor=serial", "arm=[none,cap]"))
