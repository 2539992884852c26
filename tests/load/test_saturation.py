"""The capacity measurement finds the capacity of a server whose capacity is known."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellman.engines.base import EngineDied
from bellman.errors import ConfigError, RunError
from bellman.load.completion_rate import completion_rate
from bellman.load.saturation import CapacitySettings, measure_capacity
from tests.load.places_server import run_virtual

HOW = CapacitySettings(
    concurrency=32, warmup_s=10.5, duration_s=100.0, completions=50, deadline_s=1e5
)


def measure(places, service_s, how=HOW, draw_service_s=None):
    async def main():
        server = asyncio.Semaphore(places)

        async def send_one(index):
            async with server:
                await asyncio.sleep(draw_service_s() if draw_service_s else service_s)

        return await measure_capacity(send_one, how)

    return run_virtual(main())


def test_four_places_and_a_second_of_service_are_four_requests_per_second():
    measured = measure(4, 1.0)
    assert (measured.capacity_rps, measured.low_rps, measured.high_rps) == (4.0, 4.0, 4.0)
    assert measured.completed == 400
    assert (measured.warmup_s, measured.duration_s) == (10.5, 100.0)


def test_a_window_that_is_cut_where_requests_end_counts_each_end_once():
    assert measure(4, 1.0, replace(HOW, warmup_s=10.0)).completed == 400


def test_too_few_clients_measure_their_own_concurrency():
    assert measure(4, 1.0, replace(HOW, concurrency=2)).capacity_rps == 2.0


@settings(max_examples=25, deadline=None)
@given(
    places=st.integers(1, 8),
    service_s=st.floats(0.5, 2000.0),
    concurrency=st.integers(8, 24),
    completions=st.integers(8, 80),
)
def test_a_server_however_slow_is_measured_exactly(places, service_s, concurrency, completions):
    """The window begins and ends with an answer where the fixed one would hold too few."""
    how = CapacitySettings(concurrency, 1.0, 0.1, completions, 1e9)
    measured = measure(places, service_s, how)
    assert measured.completed >= completions
    assert measured.capacity_rps == pytest.approx(places / service_s, rel=1e-4)
    assert measured.warmup_s >= service_s * concurrency / places * 0.999


def test_a_slow_servers_rounds_are_counted_whole():
    how = replace(HOW, concurrency=8, warmup_s=1.0, duration_s=10.0, completions=38)
    measured = measure(4, 50.0, how)
    assert measured.capacity_rps == pytest.approx(0.08)
    assert measured.warmup_s == pytest.approx(100.0)  # two rounds of four
    assert measured.completed == 40  # of ten rounds, the first begun by the one before
    assert measured.duration_s == pytest.approx(500.0)


def test_nine_of_ten_intervals_and_more_hold_the_known_capacity():
    """Four places of exponential service, 1 s in the mean: completions are Poisson at 4/s."""
    held, widths = 0, []
    for seed in range(100):
        draw = np.random.default_rng(seed).exponential
        measured = measure(4, 1.0, draw_service_s=lambda draw=draw: draw(1.0))
        held += measured.low_rps <= 4.0 <= measured.high_rps
        widths.append(measured.high_rps - measured.low_rps)
    assert held >= 90
    # Four times the standard error of 400 Poisson completions, and more for ten parts' t.
    assert np.mean(widths) == pytest.approx(2 * 2.26 * 4.0 / 400**0.5, rel=0.2)


def test_few_completions_have_no_interval():
    rate = completion_rate([1.0, 2.0, 3.0], 0.0, 4.0)
    assert (rate.rate_rps, rate.completed, rate.low_rps, rate.high_rps) == (0.75, 3, None, None)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (
            replace(HOW, concurrency=8, deadline_s=120.0),
            r"capacity.deadline_s=120: only 4 of the first capacity.concurrency=8 requests were "
            r"answered by then; raise it, or give arrivals.capacity_rps",
        ),
        (
            replace(HOW, concurrency=8, deadline_s=420.0),
            r"capacity.deadline_s=420: only 16 of capacity.completions=50 answers came after the "
            r"warm-up; raise it, or give arrivals.capacity_rps",
        ),
    ],
)
def test_a_deadline_that_comes_too_early_is_one_line_with_its_key(how, reason):
    """Rounds of four end at 60.5, 121, ... s."""
    with pytest.raises(RunError, match=f"^{reason}$"):
        measure(4, 60.5, how)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("concurrency", 0),
        ("completions", 0),
        ("warmup_s", -1.0),
        ("duration_s", 0.0),
        ("deadline_s", 110.0),
    ],
)
def test_wrong_settings_are_refused_by_their_key(key, value):
    with pytest.raises(ConfigError, match=f"^{key}="):
        replace(HOW, **{key: value})


def test_the_death_of_the_engine_comes_through():
    async def main():
        async def send_one(index):
            await asyncio.sleep(1)
            raise EngineDied("gone")

        await measure_capacity(send_one, HOW)

    with pytest.raises(EngineDied):
        run_virtual(main())
