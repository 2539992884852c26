"""Fits recover what made the data, and the shipped profiles keep their targets."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from analysis.validation.errors import TARGETS
from bellman.build import build
from bellman.engines.simulated.fit_energy import (
    CARD_LIMIT_W,
    component_seconds,
    fit_energy,
    watts,
)
from bellman.engines.simulated.fit_kernels import fit_kernels, kernel_ms
from bellman.engines.simulated.fit_serving import Served, fit_serving
from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.stalls import NO_STALLS, Stalls
from bellman.engines.simulated.steady_states import (
    MEASURED,
    SPLITS,
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
LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
SHIPPED = ("llama_8b_h100", "llama_70b_4xh100", "qwen3_8b_h100")
LATER = ("qwen3_14b_h100", "qwen3_32b_2xh100")
LATER_ROWS = MEASURED.with_name("mlenergy_v3_h100_qwen3_14b_32b.csv")
PROMPTS = Lengths({"lm-arena-chat": 350.0}, 1.5)


def fitted_prompts(profile: Profile) -> Lengths:
    """As scripts/fit_profile.py left them in the profile."""
    return Lengths(profile.fitted.prompt_tokens, profile.fitted.prompt_variation)


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
    rows = read_steady_states(MEASURED, LLAMA_8B)[:6]
    runs = [simulate(profile, profile.kv_blocks, row, fitted_prompts(profile)) for row in rows]
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
    for row in read_steady_states(MEASURED, LLAMA_8B)[:3]:
        run = simulate(profile, profile.kv_blocks, row, fitted_prompts(profile))
        assert watts(profile.energy, run) == pytest.approx(run.watts, rel=2e-3)


def test_the_shipped_profile_keeps_the_targets_on_rows_it_was_not_fitted_on() -> None:
    profile = shipped("llama_8b_h100")
    _, judged = halves(read_steady_states(MEASURED, LLAMA_8B))
    speed, power = [], []
    for row in judged:
        run = simulate(profile, profile.kv_blocks, row, fitted_prompts(profile))
        speed.append(run.itl_median_ms / row.itl_median_ms)
        speed.append(run.output_tokens_per_s / row.output_tokens_per_s)
        power.append(run.watts / row.watts)
    speed_errors, power_errors = np.abs(np.log(speed)), np.abs(np.log(power))
    assert np.median(speed_errors) < 0.05 and speed_errors.max() < 0.10
    assert np.median(power_errors) < 0.04 and power_errors.max() < 0.08


@pytest.mark.parametrize(("name", "median"), [(SHIPPED[0], 0.15), (SHIPPED[1], 0.06)])
def test_the_shipped_tails_are_no_worse_than_they_are_told_to_be(name: str, median: float) -> None:
    """p99 ITL of rows not fitted on: 13 % and 3 % (docs/simulator.md)."""
    profile = shipped(name)
    _, judged = halves(read_steady_states(MEASURED, profile.model))
    runs = [simulate(profile, profile.kv_blocks, row, fitted_prompts(profile)) for row in judged]
    errors = [
        run.itl_p99_ms / row.itl_p99_ms - 1
        for run, row in zip(runs, judged, strict=True)
        if row.itl_p99_ms is not None
    ]
    assert len(errors) == len(judged)
    assert np.median(np.abs(errors)) < median


@pytest.mark.slow
@pytest.mark.parametrize("name", LATER)
def test_later_profiles_keep_every_target_on_rows_they_were_not_fitted_on(name: str) -> None:
    """Median and largest error, as docs/simulator.md has the targets."""
    profile = shipped(name)
    cards = int(profile.devices.split(" x ")[0])
    assert profile.fitted.rows_digest == hashlib.sha256(LATER_ROWS.read_bytes()).hexdigest()
    _, judged = halves(read_steady_states(LATER_ROWS, profile.model, cards))
    runs = [simulate(profile, profile.kv_blocks, row, fitted_prompts(profile)) for row in judged]
    for metric, (median, largest) in TARGETS.items():
        errors = [
            abs(getattr(run, metric) / getattr(row, metric) - 1)
            for run, row in zip(runs, judged, strict=True)
        ]
        assert np.median(errors) <= median and max(errors) <= largest, metric


def test_a_tail_of_old_profiles_is_none() -> None:
    """A profile that somebody fitted before has neither entry."""
    node = OmegaConf.load(f"{CONF}/engine/profile/llama_8b_h100.yaml")
    del node.stalls
    del node.time.prefill_step_ms
    profile = build(OmegaConf.to_container(node), "profile")
    assert profile.stalls == NO_STALLS
    assert profile.time.prefill_step_ms == 0


@pytest.mark.parametrize("name", [*SHIPPED, *LATER])
def test_shipped_profiles_stay_below_the_cards_limit(name: str) -> None:
    profile = shipped(name)
    cards = int(profile.devices.split(" x ")[0])
    assert profile.energy.power_limit_w <= 700 * cards
    assert profile.energy.idle_w == 75 * cards
    full = profile.steps(0, 0, profile.fitted.sequences, profile.fitted.kv_tokens)
    assert full.joules(10) <= 700 * cards * full.seconds(10)


@pytest.mark.parametrize("name", [*SHIPPED, *LATER])
def test_no_component_of_a_shipped_profile_draws_more_than_its_cards_may(name: str) -> None:
    profile = shipped(name)
    limit_w = 1.001 * CARD_LIMIT_W * int(profile.devices.split(" x ")[0])  # four digits are kept
    for component, seconds in component_seconds(profile.time).items():
        joules = getattr(profile.energy, component)
        assert profile.energy.idle_w + joules / seconds <= limit_w, component


def test_no_fit_lets_a_component_draw_more_than_the_cards_may() -> None:
    """Rows that only an attention of 1,400 W could explain."""
    profile = shipped("llama_8b_h100")
    rows = read_steady_states(MEASURED, LLAMA_8B)[:6]
    runs = [simulate(profile, profile.kv_blocks, row, PROMPTS) for row in rows]
    most_j = (CARD_LIMIT_W - 75) * profile.time.kv_token_s()
    greedy = replace(profile.energy, kv_token_j=2.1 * most_j, power_limit_w=5000)
    rows = [
        replace(row, watts=min(CARD_LIMIT_W, watts(greedy, run)))
        for row, run in zip(rows, runs, strict=True)
    ]
    for given in (None, 2.1 * most_j):
        found = fit_energy(profile.time, rows, runs, 75, given)
        assert found.kv_token_j <= most_j * (1 + 1e-9)
        assert found.power_limit_w <= CARD_LIMIT_W


def test_rows_of_one_model_on_other_cards_are_never_mixed(tmp_path: Path) -> None:
    header, *lines = (
        line for line in MEASURED.read_text().splitlines() if not line.startswith("#")
    )
    four = [line for line in lines if ",4," in line]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([header, *four, *(line.replace(",4,", ",8,") for line in four)]))
    rows = read_steady_states(path)
    model = rows[0].model
    assert {row.gpus for row in rows} == {4, 8}
    assert {row.gpus for row in read_steady_states(path, model, 8)} == {8}
    fitted, judged = halves(rows)
    for split in (fitted, judged):
        assert len([row for row in split if row.gpus == 4]) == len(four) / 2
    with pytest.raises(RunError, match=r"on 2 cards: it has 4, 8"):
        read_steady_states(path, model, 2)


@pytest.mark.parametrize("name", ["7", "NA", "null", "a: b", "org/[bold]model"])
def test_a_model_is_named_by_its_whole_name_whatever_that_looks_like(
    tmp_path: Path, name: str
) -> None:
    header, line, *_ = (
        line for line in MEASURED.read_text().splitlines() if not line.startswith("#")
    )
    rest = line.split(",", 1)[1]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([header, f"{name},{rest}", f"{name}-Instruct,{rest}"]))
    assert [row.model for row in read_steady_states(path, name)] == [name]


def test_the_rows_are_split_by_size_and_the_halves_can_be_swapped() -> None:
    rows = read_steady_states(MEASURED)
    for name, split in SPLITS.items():
        fitted, judged = split(rows)
        assert sorted(map(id, fitted + judged)) == sorted(map(id, rows)), name
    small, large = SPLITS["small_to_large"](rows)
    assert max(row.max_num_seqs for row in small) == 128
    assert min(row.max_num_seqs for row in large) == 192
    assert SPLITS["large_to_small"](rows) == (large, small)
    assert SPLITS["swapped"](rows) == halves(rows)[::-1]


@pytest.mark.slow
def test_serving_is_recovered_for_two_models_with_the_same_prompts() -> None:
    truth = Lengths({"chat": 280.0}, 1.4)
    overheads = ((1.1, 0.8, 0.05, 300.0, 2.0), (0.9, 2.0, 0.02, 2000.0, 1.0))
    stalls = Stalls(0.02, 5.0)
    models = []
    for name, overhead in zip(SHIPPED[:2], overheads, strict=True):
        factor, host_ms, host_sequence_ms, half, prefill_step_ms = overhead
        profile = shipped(name)
        time = replace(
            profile.time,
            overhead_factor=factor,
            host_ms=host_ms,
            host_sequence_ms=host_sequence_ms,
            host_half_sequences=half,
            prefill_step_ms=prefill_step_ms,
        )
        truly = replace(profile, time=time, stalls=stalls)
        rows = []
        for batch in (4, 16, 64, 128):
            row = SteadyState("m", "chat", 1, batch, 512, 150.0, batch, 0, 0, 0, 0)
            run = simulate(truly, profile.kv_blocks, row, truth)
            rows.append(
                replace(
                    row,
                    itl_median_ms=run.itl_median_ms,
                    itl_p90_ms=run.itl_p90_ms,
                    itl_p99_ms=run.itl_p99_ms,
                    output_tokens_per_s=run.output_tokens_per_s,
                )
            )
        models.append(Served(profile, tuple(rows)))
    found = fit_serving(models, Lengths({"chat": 350.0}, 1.0), {"chat"})
    assert found.lengths.prompt_tokens["chat"] == pytest.approx(280, rel=0.1)
    # p99 ITL of four rows tells it along with the two terms of the tail: not exactly.
    assert found.lengths.prompt_variation == pytest.approx(1.4, rel=0.25)
    for model, fitted in zip(models, found.profiles, strict=True):
        for row in model.rows:
            run = simulate(fitted, fitted.kv_blocks, row, found.lengths)
            assert run.itl_median_ms == pytest.approx(row.itl_median_ms, rel=0.03)
            assert run.output_tokens_per_s == pytest.approx(row.output_tokens_per_s, rel=0.03)
            assert run.itl_p99_ms == pytest.approx(row.itl_p99_ms, rel=0.15)
    assert found.profiles[0].time.prefill_step_ms == pytest.approx(2.0, rel=0.2)


@pytest.mark.slow
def test_a_tail_that_no_row_tells_is_not_invented() -> None:
    profile = shipped("llama_8b_h100")
    rows = [replace(row, itl_p99_ms=None) for row in read_steady_states(MEASURED, LLAMA_8B)[1:4:2]]
    (found,) = fit_serving([Served(profile, tuple(rows))], PROMPTS, set()).profiles
    assert found.time.prefill_step_ms == 0
    assert found.stalls == NO_STALLS


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
    with pytest.raises(RunError, match=r"no row of model 'Llama-3\.1-8B': it has Qwen"):
        read_steady_states(MEASURED, "Llama-3.1-8B")


def test_longer_prompts_slow_the_batch_down() -> None:
    profile = shipped("llama_8b_h100")
    row = SteadyState("m", "lm-arena-chat", 1, 64, 256, 300.0, 64, 600, 0.1, 11, 5000)
    runs = [
        simulate(profile, profile.kv_blocks, row, with_prompts(PROMPTS, factor))
        for factor in (0.5, 1.0, 2.0)
    ]
    assert runs[0].output_tokens_per_s > runs[1].output_tokens_per_s > runs[2].output_tokens_per_s
