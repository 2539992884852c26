"""What makes the tail of inter-token latencies: steps that read prompts, and stalls."""

from dataclasses import replace

import numpy as np
import pytest

from bellman.engines.simulated.fluid import FluidEngine
from bellman.engines.simulated.saturated import run_saturated
from bellman.engines.simulated.segment import Limits
from bellman.engines.simulated.stalls import NO_STALLS, Stalls
from bellman.engines.simulated.step_log import weighted_percentile
from bellman.errors import ConfigError
from tests.engines.simulated.loads import PROFILE

LIMITS = Limits(max_num_seqs=4, max_num_batched_tokens=512, kv_blocks=1000, block_size=16)
READING = replace(PROFILE, time=replace(PROFILE.time, prefill_step_ms=3.0))


def test_stalls_spread_the_latencies_and_keep_their_mean():
    latencies_s, weights = np.array([0.010, 0.020]), np.array([99.0, 1.0])
    spread_s, spread_weights = Stalls(share=0.02, ms=5.0).spread(latencies_s, weights)
    assert spread_weights.sum() == pytest.approx(100)
    assert spread_s @ spread_weights == pytest.approx(latencies_s @ weights)
    found = [weighted_percentile(spread_s, spread_weights, percent) for percent in (50, 97, 98.5)]
    assert found == pytest.approx([0.0099, 0.0099, 0.0149])


@pytest.mark.parametrize("none", [NO_STALLS, Stalls(0.5, 0.0), Stalls(0.0, 9.0)])
def test_no_stall_changes_nothing(none):
    latencies_s, weights = np.array([0.010, 0.020]), np.array([99.0, 1.0])
    spread_s, spread_weights = none.spread(latencies_s, weights)
    assert spread_s.tolist() == latencies_s.tolist()
    assert spread_weights.tolist() == weights.tolist()


@pytest.mark.parametrize(("share", "ms"), [(1.0, 1.0), (-0.1, 1.0), (0.1, -1.0)])
def test_impossible_stalls_are_refused(share, ms):
    with pytest.raises(ConfigError):
        Stalls(share, ms)


def test_a_step_that_reads_prompts_costs_more_however_short_they_are():
    for prompt_tokens in (1, 400):
        composition = (prompt_tokens, prompt_tokens, 3, 900)
        more_s = READING.time.seconds(*composition) - PROFILE.time.seconds(*composition)
        assert more_s == pytest.approx(0.003)
    assert READING.time.seconds(0, 0, 3, 900) == PROFILE.time.seconds(0, 0, 3, 900)
    assert READING.steps(0, 0, 3, 900) == PROFILE.steps(0, 0, 3, 900)


def test_stalls_are_in_the_tail_of_a_run_and_in_nothing_else():
    prompts, outputs = [50] * 24, [40] * 24
    plain, stalled, reading = (
        run_saturated(profile, LIMITS, prompts, outputs, stalls)
        for profile, stalls in (
            (PROFILE, NO_STALLS),
            (PROFILE, Stalls(0.03, 4.0)),
            (READING, NO_STALLS),
        )
    )
    assert stalled.itl_p99_ms == pytest.approx(plain.itl_p99_ms + 3.9, abs=1.5)
    assert stalled.itl_median_ms == pytest.approx(plain.itl_median_ms - 0.12, abs=0.05)
    for name in ("output_tokens_per_s", "watts", "joules_per_token", "batch"):
        assert getattr(stalled, name) == getattr(plain, name)
    assert reading.output_tokens_per_s < plain.output_tokens_per_s


def test_the_fluids_mean_step_reads_prompts_in_a_share_of_its_steps():
    rate_rps = 20.0
    steps_s = [
        FluidEngine(profile.time, 100, 50.0).step_s(10, 100, rate_rps)
        for profile in (PROFILE, READING)
    ]
    share = 1 - np.exp(-rate_rps * steps_s[1])
    assert steps_s[1] - steps_s[0] == pytest.approx(0.003 * share, rel=0.15)
