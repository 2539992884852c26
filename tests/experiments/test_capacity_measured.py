"""experiment=capacity against a real server process of known capacity."""

import json

import pytest

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from tests.servers import GATEWAY_ENVIRONMENT, MIDDLEWARE, MOCK, Mock, run_experiment

pytestmark = [pytest.mark.slow, pytest.mark.alone]


async def test_a_server_of_four_places_and_half_a_second(tmp_path):
    """Four places, 0.5 s an answer: 8 requests a second, whatever the clients do."""
    server = child_server([MOCK, "--middleware", MIDDLEWARE], GATEWAY_ENVIRONMENT)
    async with server as url, open_pool(None) as pool:
        await Mock(pool, url).behave(places=4, ttft_s=0.2, gap_s=0.1)
        await run_experiment(
            *("experiment=capacity", "engine=openai", "energy=none"),
            *(f"engine.base_url={url}", f"folder={tmp_path / 'run'}", "drain_s=10"),
            *("study.clients_limit=16", "study.closed_warmup_s=2", "study.closed_test_s=8"),
            *("study.closed_lifetimes=8", "study.growth=0.1", "timeline_period_s=0.1"),
            "study.closed_completions=10",
            *("study.loads=[0.5,1.3]", "study.open_warmup_s=1", "study.open_test_s=8"),
            *(
                "study.resolution=0.5",
                "study.slo_scales=[1.0]",
                "study.load_limit=1.5",
                "slo.e2e_s=1.0",
                "slo.tpot_s=null",
            ),
        )
    study = json.loads((tmp_path / "run" / "result.json").read_text())
    assert study["source"] == "measured"
    assert study["capacity_rps"] == pytest.approx(8.0, rel=0.05)
    closed = {point["clients"]: point for point in study["arms"]["none"]["closed"]}
    assert closed[1]["throughput_rps"] == pytest.approx(2.0, rel=0.05)
    assert closed[4]["throughput_rps"] == pytest.approx(8.0, rel=0.05)
    assert closed[8]["latency_s"] == pytest.approx(1.0, rel=0.05)
    assert all(abs(point["littles_error"]) <= 0.05 for point in closed.values())
    low, high = study["arms"]["none"]["open"][0], study["arms"]["none"]["open"][-1]
    assert low["slo_attainment"] > 0.9 > high["slo_attainment"]
