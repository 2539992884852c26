"""Load models on servers with known answers: Little's law, caps, returning users."""

import asyncio
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from bellman.build import build
from bellman.engines.base import EngineDied
from bellman.errors import ConfigError
from bellman.load.models.capped_loop import CappedLoop
from bellman.load.models.closed_loop import ClosedLoop
from bellman.load.models.open_loop import OpenLoop
from bellman.load.models.partly_open import PartlyOpenLoop
from tests.load.places_server import PlacesServer, run_virtual, schedule_at

CONF = Path(__file__).parents[2] / "conf" / "load_model"
TICK_S = 1e-6


def serve(model, schedule, places, service_s, *, draw_service_s=None, run=run_virtual):
    async def main():
        server = PlacesServer(places, service_s, draw_service_s)
        deadline_s = server.start_s + schedule.end_s + 1000
        pacing = await model.drive(schedule, server.send, server.start_s, deadline_s)
        return server.answers, pacing

    return run(main())


def test_eight_closed_loop_clients_of_four_places_wait_two_seconds():
    answers, pacing = serve(ClosedLoop(8, 0.0), schedule_at([0.0], end_s=100.0), 4, 1.0)
    later = [answer for answer in answers if answer.intended_s >= 1.5]
    assert len(later) > 300
    for answer in later:
        assert answer.e2e_s == pytest.approx(2.000, abs=1e-4)
    assert pacing.lag_max_s <= 2 * TICK_S


def test_littles_law_holds_with_think_time():
    clients, think_s = 12, 2.0
    draw = np.random.default_rng(1).exponential
    answers, _ = serve(
        ClosedLoop(clients, think_s),
        schedule_at([0.0], end_s=4000.0),
        4,
        1.0,
        draw_service_s=lambda: draw(1.0),
    )
    done = [answer for answer in answers if answer.ended_s <= 4000]
    throughput_rps = len(done) / 4000
    mean_e2e_s = np.mean([answer.e2e_s for answer in done])
    assert throughput_rps * (mean_e2e_s + think_s) == pytest.approx(clients, rel=0.01)


def test_a_cap_of_one_counts_the_wait_as_the_users():
    answers, pacing = serve(CappedLoop(1), schedule_at([k / 10 for k in range(8)]), 100, 0.5)
    assert np.mean([answer.e2e_s for answer in answers]) == pytest.approx(1.9, abs=1e-4)
    assert np.mean([answer.service_latency_s for answer in answers]) == pytest.approx(0.5, abs=1e-4)
    assert pacing.lag_max_s <= 2 * TICK_S
    assert [answer.request_id for answer in answers] == list(range(8))


def test_a_cap_that_is_never_reached_is_the_open_loop():
    times = list(np.floor(np.cumsum(np.random.default_rng(2).exponential(0.3, 300)) * 1e6) / 1e6)
    capped, _ = serve(CappedLoop(1000), schedule_at(times), 4, 1.0)
    opened, _ = serve(OpenLoop(), schedule_at(times), 4, 1.0)
    assert [a.e2e_s for a in capped] == pytest.approx([a.e2e_s for a in opened], abs=1e-4)


def test_returning_users_raise_the_rate_by_the_known_factor():
    times = [k / 2 for k in range(8000)]
    answers, pacing = serve(
        PartlyOpenLoop(0.4, 3.0), schedule_at(times, end_s=4000.0), places=50, service_s=1.0
    )
    rate_rps = len(answers) / 4000
    assert rate_rps == pytest.approx(2 / (1 - 0.4), rel=0.03)
    assert len({answer.request_id for answer in answers}) == len(answers)
    assert max(answer.intended_s for answer in answers) < 4000
    assert pacing.lag_max_s <= 2 * TICK_S
    visits = Counter(answer.request_id % len(times) for answer in answers)
    share = np.mean([count > 1 for count in visits.values()])
    assert share == pytest.approx(0.4, abs=0.03)


def test_users_decide_alike_whatever_the_server_does():
    schedule = schedule_at([k / 2 for k in range(200)], end_s=1e6)
    fast, _ = serve(PartlyOpenLoop(0.5, 1.0), schedule, places=50, service_s=0.1)
    slow, _ = serve(PartlyOpenLoop(0.5, 1.0), schedule, places=50, service_s=7.0)
    assert sorted(a.request_id for a in fast) == sorted(a.request_id for a in slow)


def test_the_death_of_the_engine_ends_every_model():
    async def main(model):
        async def send(request):
            await asyncio.sleep(1)
            raise EngineDied("gone")

        with pytest.raises(EngineDied):
            await model.drive(schedule_at([0.0, 0.1]), send, 0.0, 1000.0)
        assert len(asyncio.all_tasks()) == 1, "a task was left behind"

    for model in (OpenLoop(), CappedLoop(1), ClosedLoop(2, 0.0), PartlyOpenLoop(0.5, 1.0)):
        run_virtual(main(model))


@pytest.mark.slow
@pytest.mark.alone
def test_the_known_answers_hold_in_real_time_within_two_percent():
    closed, _ = serve(ClosedLoop(8, 0.0), schedule_at([0.0], end_s=8.0), 4, 1.0, run=asyncio.run)
    steady = [a.e2e_s for a in closed if 1.5 <= a.intended_s <= 8.0]
    assert np.mean(steady) == pytest.approx(2.0, rel=0.02)
    opened, _ = serve(OpenLoop(), schedule_at([k / 6 for k in range(60)]), 4, 1.0, run=asyncio.run)
    assert opened[-1].e2e_s == pytest.approx(5.667, rel=0.02)
    capped, _ = serve(
        CappedLoop(1), schedule_at([k / 10 for k in range(8)]), 100, 0.5, run=asyncio.run
    )
    assert np.mean([a.e2e_s for a in capped]) == pytest.approx(1.9, rel=0.02)
    assert np.mean([a.service_latency_s for a in capped]) == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("kind", ["open", "capped", "closed", "partly_open"])
def test_the_configurations_build(kind):
    model = build(OmegaConf.load(CONF / f"{kind}.yaml"), "load_model")
    assert model.sends_schedule is (kind != "closed")


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("capped", "concurrency", 0),
        ("closed", "clients", 0),
        ("closed", "think_s", -1),
        ("partly_open", "return_probability", 1.0),
    ],
)
def test_a_wrong_value_names_its_key(kind, key, value):
    node = OmegaConf.merge(OmegaConf.load(CONF / f"{kind}.yaml"), {key: value})
    with pytest.raises(ConfigError, match=rf"^load_model\.{key}={value}"):
        build(node, "load_model")
