"""The fit to batches finds the engine that took the times."""

from dataclasses import replace

import pytest

from bellman.engines.batches import Batch, BatchTimes
from bellman.engines.simulated.engine import SimulatedEngine
from bellman.engines.simulated.fit_batches import START, fit_batches, simulate
from bellman.engines.simulated.front_end import FrontEnd
from bellman.engines.simulated.profile import FittedRange, Profile
from bellman.engines.simulated.step_energy import StepEnergy

TRUTH = replace(START, floor_ms=25.0, token_ms=0.6, pair_ms=4e-4, kv_token_ms=2e-3, sequence_ms=3.0)
PROFILE = Profile(
    "m",
    "CPU",
    "test",
    5000,
    FrontEnd(mean_ms=35.0, variation=0.4),
    TRUTH,
    StepEnergy(0, 1, 0, 0, 0, 0),
    FittedRange(16, 10**6, 2048),
)
ENGINE = SimulatedEngine(PROFILE, 16, 2048, 5000, 16, 4096)


def test_finds_the_step_time_and_the_front_end_from_batches():
    batches = [Batch(n, words, 24) for n in (1, 4, 16) for words in (50, 600)]
    batches.append(Batch(40, 600, 24, 0.9))
    unknown = [(batch, BatchTimes(2 * batch.prompt_words, 0.0, 0.0)) for batch in batches]
    times = simulate(ENGINE, unknown).reshape(-1, 2)
    measured = [
        (batch, BatchTimes(2 * batch.prompt_words, *map(float, row)))
        for batch, row in zip(batches, times, strict=True)
    ]
    fitted, errors = fit_batches(ENGINE, measured)
    assert abs(errors).max() < 0.01
    assert fitted.front_end.mean_ms == pytest.approx(35, rel=0.1)
    for prefill, pairs, sequences, kv_tokens in ((0, 0, 16, 12_000), (2048, 2e6, 0, 0)):
        expected = TRUTH.seconds(prefill, int(pairs), sequences, kv_tokens)
        assert fitted.time.seconds(prefill, int(pairs), sequences, kv_tokens) == pytest.approx(
            expected, rel=0.05
        )


def test_a_mixed_batch_spreads_its_lengths_evenly():
    batch = Batch(40, 100, 200, 0.9)
    lengths = [batch.length_tokens(index) for index in range(batch.requests)]
    assert sum(lengths) / len(lengths) == pytest.approx(200, rel=0.03)
    assert min(lengths) == pytest.approx(20, abs=10)
    assert max(lengths) == batch.longest_tokens == pytest.approx(380, abs=10)
    assert len(set(lengths)) == len(lengths)
    assert {Batch(16, 100, 200).length_tokens(index) for index in range(16)} == {200}
