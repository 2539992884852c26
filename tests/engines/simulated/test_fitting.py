"""Fits recover what made the data, and the shipped profiles keep their targets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from bellman.build import build
from bellman.engines.simulated.fitting import fit_energy, fit_kernels, kernel_ms, watts
from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.steady_states import (
    MEASURED,
    Lengths,
    SteadyState,
    halves,
    read_steady_states,
    simulate,
    with_prompts,
)
from bellman.errors import RunError
from tests.engines.simulated.loads import PROFILE

CONF = str(Path(__file__).parents[3] / "conf")
FITTED_PROMPTS = Lengths({"lm-arena-chat": 357.0})
"""As scripts/fit_profile.py reports them in the profile's YAML."""


def shipped(name: str) -> Profile:
    with initialize_config_dir(CONF, version_base=None):
        profile = build(compose(overrides=[f"+engine/profile={name}"]).engine.profile, "profile")
    assert isinstance(profile, Profile)
    return profile


def test_kernel_coefficients_are_recovered() -> None:
    compositions = [
        (prefill, prefix, length, sequences, sequences * context)
        for prefill, prefix, length in (
            (0, 0, 0),
            (64, 0, 64),
            (512, 0, 512),
            (4096, 0, 1024),
            (8192, 0, 8192),
            (2048, 6144, 8192),
        )
        for sequences in (0, 1, 16, 128, 512)
        for context in (100, 1000)
        if prefill + sequences
    ]
    columns = ["prefill_tokens", "prefix", "ctx_len", "decode_seqs", "kv_tokens"]
    steps = pd.DataFrame(compositions, columns=columns)
    steps["latency_ms"] = kernel_ms(np.array([6.0, 0.02, 0.8, 4.0, 0.003]), steps)
    time, errors = fit_kernels(steps)
    assert np.abs(errors).max() < 1e-3
    found = (time.floor_ms, time.token_ms, time.pair_ms, time.kv_token_ms, time.sequence_ms)
    assert found == pytest.approx((6.0, 0.02, 0.8e-6, 4e-5, 0.003), rel=0.02)


def test_the_rest_of_a_prompt_attends_to_all_before_it() -> None:
    steps = pd.DataFrame(
        [(4, 10, 14, 0, 0)],
        columns=["prefill_tokens", "prefix", "ctx_len", "decode_seqs", "kv_tokens"],
    )
    pairs = 1e6 * kernel_ms(np.array([0.0, 0.0, 1.0, 0.0, 0.0]), steps)[0]
    assert pairs == pytest.approx(4 * 10 + 4 * 4 / 2)


def test_energy_coefficients_are_recovered() -> None:
    profile = shipped("llama_8b_h100")
    rows = read_steady_states(MEASURED, "Llama-3.1-8B")[:6]
    runs = [simulate(profile, profile.kv_blocks, row, FITTED_PROMPTS) for row in rows]
    rows = [
        replace(row, watts=watts(profile.energy, run)) for row, run in zip(rows, runs, strict=True)
    ]
    kv_token_j = profile.energy.kv_token_j
    found = fit_energy(profile.time, rows, runs, profile.energy.idle_w, kv_token_j)
    for row, run in zip(rows, runs, strict=True):
        assert watts(found, run) == pytest.approx(row.watts, rel=5e-3)
    assert found.step_j == pytest.approx(profile.energy.step_j, rel=0.03)
    assert found.power_limit_w <= 700


def test_the_sums_of_a_window_give_the_energy_that_the_engine_integrates() -> None:
    profile = shipped("llama_8b_h100")
    for row in read_steady_states(MEASURED, "Llama-3.1-8B")[:3]:
        run = simulate(profile, profile.kv_blocks, row, FITTED_PROMPTS)
        assert watts(profile.energy, run) == pytest.approx(run.watts, rel=2e-3)


def test_the_shipped_profile_keeps_the_targets_on_rows_it_was_not_fitted_on() -> None:
    profile = shipped("llama_8b_h100")
    _, judged = halves(read_steady_states(MEASURED, "Llama-3.1-8B"))
    speed, power = [], []
    for row in judged:
        run = simulate(profile, profile.kv_blocks, row, FITTED_PROMPTS)
        speed.append(run.itl_median_ms / row.itl_median_ms)
        speed.append(run.output_tokens_per_s / row.output_tokens_per_s)
        power.append(run.watts / row.watts)
    speed_errors, power_errors = np.abs(np.log(speed)), np.abs(np.log(power))
    assert np.median(speed_errors) < 0.05 and speed_errors.max() < 0.10
    assert np.median(power_errors) < 0.04 and power_errors.max() < 0.08


@pytest.mark.parametrize("name", ["llama_8b_h100", "llama_70b_4xh100", "qwen3_8b_h100"])
def test_shipped_profiles_stay_below_the_cards_limit(name: str) -> None:
    profile = shipped(name)
    cards = int(profile.devices.split(" x ")[0])
    assert profile.energy.power_limit_w <= 700 * cards
    assert profile.energy.idle_w == 75 * cards
    full = profile.steps(0, 0, profile.fitted.sequences, profile.fitted.kv_tokens)
    assert full.joules(10) <= 700 * cards * full.seconds(10)


def test_leaving_the_fitted_range_is_said_in_words() -> None:
    assert PROFILE.fitted.exceeded_by(100, 10_000, 1000) == []
    assert PROFILE.fitted.exceeded_by(101, 0, 0) == ["more than 100 sequences in the batch"]


def test_rows_are_split_into_every_other_one() -> None:
    rows = read_steady_states(MEASURED)
    fitted, judged = halves(rows)
    assert {id(row) for row in fitted} | {id(row) for row in judged} == {id(row) for row in rows}
    chat = [row.max_num_seqs for row in judged if "8B-I" in row.model]
    assert chat == [16, 64, 128, 256, 512]


def test_a_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("model_id,task\nx,y\n")
    with pytest.raises(RunError, match="lacks the columns avg_batch_size"):
        read_steady_states(path)
    with pytest.raises(RunError, match="'GPT-9'"):
        read_steady_states(MEASURED, "GPT-9")


def test_longer_prompts_slow_the_batch_down() -> None:
    profile = shipped("llama_8b_h100")
    row = SteadyState("m", "lm-arena-chat", 1, 64, 256, 300.0, 64, 600, 0.1, 11, 5000)
    runs = [
        simulate(profile, profile.kv_blocks, row, with_prompts(FITTED_PROMPTS, factor))
        for factor in (0.5, 1.0, 2.0)
    ]
    assert runs[0].output_tokens_per_s > runs[1].output_tokens_per_s > runs[2].output_tokens_per_s
