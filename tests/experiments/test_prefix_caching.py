"""One switch for prefix caching, on both kinds of engine, said beside the results."""

import json

import pandas as pd
import pytest

from analysis import rows
from bellman.settings import read_settings
from tests.experiments.conftest import read_config

ON = "prefix_caching=true"


@pytest.mark.parametrize(("overrides", "on"), [((), False), ((ON,), True)])
def test_both_engines_follow_it(overrides, on):
    simulated = read_settings(read_config(*overrides)).engine
    vllm = read_settings(read_config("engine=vllm", "model=m", *overrides)).engine
    assert simulated.enable_prefix_caching is on
    assert vllm.arguments["enable-prefix-caching"] is on


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def test_documents_are_found_again_only_where_it_is_on_and_the_results_say_so(run_small):
    tiny = (
        *("repeats=1", "arm=[none,threshold]", "arms.threshold.controller.limit=1000"),
        *("arrivals=steady", "arrivals.rate_rps=1", "arrivals.load=null"),
        *("arrivals.warmup_s=0", "arrivals.duration_s=60"),
        "corpus.limit_documents=2",
    )
    without, cached = run_small(*tiny), run_small(*tiny, ON)
    assert rows.source_line(summary(without)).endswith("prefix caching off")
    assert rows.source_line(summary(cached)).endswith("prefix caching on (starts empty)")
    ttft_s = []
    for folder in (without, cached):
        requests = pd.read_parquet(folder / "requests.parquet").sort_values(["arm", "request_id"])
        assert set(requests.status) == {"ok"}
        ttft_s.append((requests.first_token_s - requests.intended_s).to_numpy())
    first = slice(0, 1)  # nothing is known before it
    assert ttft_s[1][first] == pytest.approx(ttft_s[0][first], abs=2e-6)
    assert ttft_s[1].mean() < 0.8 * ttft_s[0].mean()
