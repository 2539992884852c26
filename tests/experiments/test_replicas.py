"""Several engines as one: their capacity is measured, and each runs the law on its own load."""

import json

import pandas as pd
import pytest
from rich.console import Console

from experiments.execute import execute
from tests.experiments.conftest import TINY, read_config


def test_three_engines_carry_three_times_the_load_of_one(tmp_path):
    short = ("capacity.warmup_s=5", "capacity.duration_s=20", "capacity.completions=20")

    def capacity_rps(experiment: str, clients: int) -> float:
        config = read_config(
            f"experiment={experiment}",
            "executor=serial",
            *(entry for entry in TINY if "capacity" not in entry),
            *(*short, f"capacity.concurrency={clients}", "arrivals.overload=1.1"),
            f"folder={tmp_path / experiment}",
        )
        folder = execute(config, Console(quiet=True), draw=False)
        (found,) = json.loads((folder / "capacity.json").read_text())
        return found["capacity_rps"]

    one, three = capacity_rps("summarize_congested", 8), capacity_rps("replicas", 24)
    assert three == pytest.approx(3 * one, rel=0.1)
    requests = pd.read_parquet(tmp_path / "replicas" / "requests.parquet")
    counts = requests["replica"].value_counts()
    assert set(counts.index) == {"first", "second", "third"}
    assert counts.max() - counts.min() <= 2 * 2  # in turn, in both arms
