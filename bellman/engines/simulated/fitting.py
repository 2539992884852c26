"""Fits a profile: kernels on step times, serving overhead and energy on measured steady states."""

from collections.abc import Sequence as Items
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.saturated import SaturatedRun
from bellman.engines.simulated.steady_states import Lengths, SteadyState, simulate
from bellman.engines.simulated.step_energy import StepEnergy
from bellman.engines.simulated.step_time import StepTime

Vector = NDArray[np.float64]
CARD_LIMIT_W = 700.0
"""TDP of an H100 SXM: no fit exceeds it."""


def kernel_ms(coefficients: Vector, steps: pd.DataFrame) -> Vector:
    """Return the kernels' time of step rows (columns as `fit_kernels` says)."""
    floor, token, pair, kv_token, sequence = coefficients
    prefill = steps["prefill_tokens"].to_numpy(float)
    sequences = steps["decode_seqs"].to_numpy(float)
    pairs = 0.5 * prefill * (steps["prefix"] + steps["ctx_len"]).to_numpy(float)
    times: Vector = (
        np.hypot(floor, token * (prefill + sequences))
        + 1e-6 * pair * pairs
        + 1e-5 * kv_token * steps["kv_tokens"].to_numpy(float)
        + sequence * sequences
    )
    return times


def fit_kernels(steps: pd.DataFrame) -> tuple[StepTime, Vector]:
    """Fit the kernel coefficients to step times; returns them and the relative errors.

    Columns: prefill_tokens, prefix (tokens computed before them), ctx_len (length of the prompts
    that the prefill tokens belong to; prefix + prefill_tokens if they are the rest of one),
    decode_seqs, kv_tokens, latency_ms.
    """
    measured = steps["latency_ms"].to_numpy(float)

    def residuals(coefficients: Vector) -> Vector:
        errors: Vector = np.log(kernel_ms(coefficients, steps) / measured)
        return errors

    start = np.array([float(measured.min()), 0.02, 1.0, 4.0, 0.003])
    fit = least_squares(
        residuals, start, bounds=(1e-9, np.inf), x_scale=start, loss="soft_l1", f_scale=0.05
    )
    floor, token, pair, kv_token, sequence = (float(value) for value in fit.x)
    time = StepTime(floor, token, 1e-6 * pair, 1e-5 * kv_token, sequence, 1.0, 0.0, 0.0, 1e9)
    errors: Vector = np.expm1(residuals(fit.x))
    return time, errors


@dataclass(frozen=True)
class ServingFit:
    """Overheads of serving over kernels, and the prompts that go with them."""

    time: StepTime
    lengths: Lengths


def fit_serving(
    profile: Profile, rows: Items[SteadyState], lengths: Lengths, fit_prompts: set[str]
) -> ServingFit:
    """Fit the overheads, and the mean prompt lengths of the tasks in `fit_prompts`, to the rows.

    Targets are the median ITL and tokens/s.
    """
    tasks = sorted({row.task for row in rows})
    start = [1.05, 0.3, 0.04, 1.0] + [lengths.prompt_tokens[task] / 100 for task in tasks]
    lower, upper = [0.95, 0.0, 0.0, 0.1], [1.6, 5.0, 0.3, 100.0]
    for task, value in zip(tasks, start[4:], strict=True):
        lower.append(0.2 if task in fit_prompts else value * 0.999)
        upper.append(20.0 if task in fit_prompts else value * 1.001)

    def candidate(values: Vector) -> ServingFit:
        time = replace(
            profile.time,
            overhead_factor=float(values[0]),
            host_ms=float(values[1]),
            host_sequence_ms=float(values[2]),
            host_half_sequences=1000 * float(values[3]),
        )
        prompts = {task: 100 * float(v) for task, v in zip(tasks, values[4:], strict=True)}
        return ServingFit(time, replace(lengths, prompt_tokens=prompts))

    def residuals(values: Vector) -> Vector:
        fit = candidate(values)
        errors: list[float] = []
        for row in rows:
            run = simulate(replace(profile, time=fit.time), profile.kv_blocks, row, fit.lengths)
            errors.append(np.log(run.itl_median_ms / row.itl_median_ms))
            errors.append(np.log(run.output_tokens_per_s / row.output_tokens_per_s))
        return np.array(errors)

    scale = [0.05, 0.3, 0.01, 1.0] + [1.0] * len(tasks)
    fit = least_squares(
        residuals, start, bounds=(lower, upper), x_scale=scale, diff_step=0.03, max_nfev=15
    )
    return candidate(fit.x)


def fit_energy(
    time: StepTime,
    rows: Items[SteadyState],
    runs: Items[SaturatedRun],
    idle_w: float,
    kv_token_j: float | None,
) -> StepEnergy:
    """Fit the energy coefficients to watts; the runs come from the profile's own step times.

    Two assumptions make the split identifiable. A prefill that fills the GPU draws the power limit,
    so that prefill_token_j follows from its time. `kv_token_j` is given where the rows cannot tell
    it (contexts of one length), and fitted where it is None.
    """
    token_s = 1e-3 * time.overhead_factor * time.token_ms

    def candidate(values: Vector) -> StepEnergy:
        step_j, sequence_j, limit_w, kv_uj = (float(value) for value in values)
        return StepEnergy(
            idle_w=idle_w,
            power_limit_w=limit_w,
            step_j=step_j,
            prefill_token_j=(limit_w - idle_w) * token_s,
            sequence_j=sequence_j,
            kv_token_j=1e-6 * kv_uj if kv_token_j is None else kv_token_j,
        )

    def residuals(values: Vector) -> Vector:
        energy = candidate(values)
        return np.array(
            [np.log(watts(energy, run) / row.watts) for row, run in zip(rows, runs, strict=True)]
        )

    highest_w = max(row.watts for row in rows)
    start = np.array([3.0 * highest_w / 700, 0.04 * highest_w / 700, highest_w, 30.0])
    limit_w = min(1.1 * highest_w, CARD_LIMIT_W * rows[0].gpus)
    lower, upper = [0, 0, 0.9 * highest_w, 0], [np.inf, np.inf, limit_w, np.inf]
    return candidate(least_squares(residuals, start, bounds=(lower, upper), x_scale=start).x)


def watts(energy: StepEnergy, run: SaturatedRun) -> float:
    """Return the mean power of a run's window, from the sums of its segments."""
    work = run.work
    unlimited_j = (
        energy.idle_w * work.seconds
        + energy.step_j * work.steps
        + energy.prefill_token_j * work.prefill_tokens
        + energy.sequence_j * work.sequence_steps
        + energy.kv_token_j * work.kv_token_steps
    )
    joules = np.minimum(unlimited_j, energy.power_limit_w * work.seconds).sum()
    return float(joules / work.seconds.sum())
