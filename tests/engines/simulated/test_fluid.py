"""The fluid model against closed forms: a step of constant length makes it linear."""

import numpy as np
import pytest

from bellman.controllers.bellman import QueueLaw
from bellman.controllers.none import NoControl
from bellman.engines.simulated.fluid import FluidEngine, predict, rate_at
from bellman.engines.simulated.step_time import StepTime
from bellman.load.schedule import Phase

STEP_S, LENGTH = 0.02, 100.0
CONSTANT = StepTime(
    floor_ms=1000 * STEP_S,
    token_ms=0.0,
    pair_ms=0.0,
    kv_token_ms=0.0,
    sequence_ms=0.0,
    overhead_factor=1.0,
    host_ms=0.0,
    host_sequence_ms=0.0,
    host_half_sequences=1.0,
)


def outstanding(rate_rps: float, max_num_seqs: int) -> tuple[np.ndarray, np.ndarray]:
    points = predict(
        FluidEngine(CONSTANT, max_num_seqs, 500.0),
        [Phase("steady", 0.0, 60.0, rate_rps)],
        NoControl(),
        lambda _: LENGTH,
        period_s=1.0,
        end_s=30.0,
    )
    return np.array([p.time_s for p in points]), np.array([p.outstanding for p in points])


def test_below_the_batch_limit_it_fills_like_a_server_for_everyone():
    times_s, found = outstanding(rate_rps=50.0, max_num_seqs=10_000)
    service_s = STEP_S * LENGTH
    expected = 50.0 * service_s * (1 - np.exp(-times_s / service_s))
    assert found == pytest.approx(expected, rel=0.01, abs=0.05)


def test_above_the_batch_limit_the_queue_grows_by_what_is_not_served():
    times_s, found = outstanding(rate_rps=50.0, max_num_seqs=40)
    served_rps = 40 / (STEP_S * LENGTH)
    growth = np.diff(found[times_s > 5])
    assert growth == pytest.approx(np.full(len(growth), 50.0 - served_rps), rel=0.01)


def test_the_law_that_runs_on_a_server_shortens_the_fluid():
    law = QueueLaw(q_low=20, q_high=60, max_step=1.0)
    points = predict(
        FluidEngine(CONSTANT, 10_000, 500.0),
        [Phase("steady", 0.0, 60.0, 50.0)],
        law,
        lambda level: LENGTH * (1 - 0.8 * level),
        period_s=1.0,
        end_s=60.0,
    )
    last = points[-1]
    # At rest N = rate x step x L(level) and level = (N - 20) / 40: N = 100 - 2 (N - 20).
    assert last.outstanding == pytest.approx(140 / 3, rel=0.03)
    assert last.level == pytest.approx(law.target(140 / 3), abs=0.05)
    assert all(0.0 <= point.level <= 1.0 for point in points)


def test_nothing_is_offered_after_the_last_phase():
    phases = [Phase("a", 0.0, 10.0, 3.0), Phase("b", 10.0, 20.0, 5.0)]
    assert [rate_at(phases, time_s) for time_s in (0.0, 9.99, 10.0, 20.0)] == [3.0, 3.0, 5.0, 0.0]
