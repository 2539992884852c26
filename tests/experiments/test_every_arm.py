"""Every arm in conf/arm serves a whole run: a new one is tested by being there."""

import pandas as pd
import pytest
from rich.console import Console

from analysis.gather import gather
from experiments.execute import execute
from tests.experiments.conftest import CONF, TINY, read_config

ARMS = sorted(path.stem for path in (CONF / "arm").glob("*.yaml"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    config = read_config(
        f"arm=[{','.join(ARMS)}]",
        *TINY,
        "arrivals.capacity_rps=12",
        "congestion.q_low=5",
        "congestion.q_high=40",
        f"folder={tmp_path_factory.mktemp('run') / 'arms'}",
    )
    with pytest.MonkeyPatch.context() as patch:  # the records are enough
        patch.setattr("experiments.execute.check_end", lambda _, draw: None)
        patch.setattr("experiments.execute.finish", lambda run, *_, draw: gather(run.path))
        return execute(config, Console(quiet=True), draw=False)


def test_every_arm_accounts_for_every_request(folder):
    requests = pd.read_parquet(folder / "requests.parquet")
    offered = set(pd.read_parquet(folder / "schedule.parquet")["request_id"])
    assert len(offered) > 100
    for arm in ARMS:
        own = requests[requests["arm"] == arm]
        assert set(own["request_id"]) == offered, arm
        assert len(own) == len(offered), arm
        assert set(own["status"]) <= {"ok", "rejected"}, arm


def test_every_arm_publishes_a_level(folder):
    timeline = pd.read_parquet(folder / "timeline.parquet")
    for arm in ARMS:
        levels = timeline[timeline["arm"] == arm]["level"]
        assert levels.between(0, 1).all(), arm
