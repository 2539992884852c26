"""Fits what serving adds to the kernels, and the prompts that go with it, to steady states.

Prompt lengths of the measured requests are not published. Models of one tokenizer family were sent
the same prompts, so that one distribution is fitted for all of them, together with the overheads of
each.
"""

from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.stalls import NO_STALLS, Stalls
from bellman.engines.simulated.steady_states import Lengths, SteadyState, simulate

Vector = NDArray[np.float64]
Values = tuple[float, ...]
WEIGHTS = {
    "itl_median_ms": 1.0,
    "output_tokens_per_s": 1.0,
    "itl_p90_ms": 0.3,
    "itl_p99_ms": 0.15,
}
"""Of the logarithms of simulated / measured: percentiles depend on what is assumed of lengths."""
START = (1.0, 0.4, 0.05, np.log(1000.0), 1.0, 0.015, 3.0)
"""Overhead factor, host_ms, host_sequence_ms, logarithm of host_half_sequences, prefill_step_ms,
share and ms of stalls."""
LOWER = (0.5, 0.0, 0.0, np.log(50.0), 0.0, 0.0, 0.0)
UPPER = (1.6, 8.0, 0.5, np.log(1e5), 20.0, 0.3, 30.0)
SCALE = (0.05, 0.3, 0.01, 1.0, 1.0, 0.01, 2.0)
OVERHEADS = len(START)
OF_TAIL = 3
"""The last ones: p99 ITL alone tells them; where no row has it they are 0."""
BELIEF = 0.02
"""Residual of a coefficient that is its scale away from the start: decides what no row does."""
NONE = 1e-6
"""Up to this a coefficient of the tail is none."""
PROMPT_UNIT = 100.0
PROMPT_BOUNDS = (0.2, 40.0)
VARIATION_BOUNDS = (0.3, 4.0)


@dataclass(frozen=True)
class Served:
    """A model on its cards, and the steady states that were measured of it."""

    profile: Profile
    rows: tuple[SteadyState, ...]


@dataclass(frozen=True)
class ServingFit:
    """The profiles with what serving adds, and the lengths that go with them."""

    profiles: tuple[Profile, ...]
    lengths: Lengths


def fit_serving(models: Items[Served], lengths: Lengths, fit_prompts: set[str]) -> ServingFit:
    """Fit the overheads of every model, and one distribution of prompts for all.

    Mean lengths are fitted for the tasks in `fit_prompts`, and taken from `lengths` for the others;
    their variation is fitted where p99 ITL was measured. Targets: ITL (median, p90, p99; where they
    were measured) and tokens/s.
    """
    tasks = sorted({row.task for model in models for row in model.rows} & fit_prompts)
    start = [lengths.prompt_variation, *(lengths.prompt_tokens[t] / PROMPT_UNIT for t in tasks)]
    lower, upper = [VARIATION_BOUNDS[0]], [VARIATION_BOUNDS[1]]
    begin, most = np.array(START), np.array(UPPER)
    if all(row.itl_p99_ms is None for model in models for row in model.rows):  # nothing tells it
        lower, upper = [0.999 * start[0]], [1.001 * start[0]]
        begin[-OF_TAIL:], most[-OF_TAIL:] = 0.0, NONE
    lower += [PROMPT_BOUNDS[0]] * len(tasks)
    upper += [PROMPT_BOUNDS[1]] * len(tasks)
    scale = [0.3] + [1.0] * len(tasks)
    shared = len(start)

    def lengths_of(values: Values) -> Lengths:
        fitted = {task: PROMPT_UNIT * v for task, v in zip(tasks, values[1:], strict=True)}
        prompts = {**lengths.prompt_tokens, **fitted}
        return replace(lengths, prompt_tokens=prompts, prompt_variation=values[0])

    @cache
    def errors(number: int, prompts: Values, overheads: Values) -> list[float]:
        model = models[number]
        profile = with_overheads(model.profile, overheads)
        drawn = lengths_of(prompts)
        found = [error for row in model.rows for error in row_errors(profile, row, drawn)]
        beliefs = zip(overheads, begin, SCALE, strict=True)
        return found + [BELIEF * (value - first) / width for value, first, width in beliefs]

    def residuals(values: Vector) -> Vector:
        plain = tuple(map(float, values))
        return np.concatenate(
            [
                errors(number, plain[:shared], overheads_of(plain[shared:], number))
                for number in range(len(models))
            ]
        )

    count = len(models)
    fit = least_squares(
        residuals,
        np.array([*start, *np.tile(begin, count)]),
        bounds=([*lower, *LOWER * count], [*upper, *np.tile(most, count)]),
        x_scale=np.array([*scale, *SCALE * count]),
        diff_step=0.03,
        max_nfev=15,
    )
    plain = tuple(map(float, fit.x))
    profiles = tuple(
        with_overheads(model.profile, overheads_of(plain[shared:], number))
        for number, model in enumerate(models)
    )
    return ServingFit(profiles, lengths_of(plain[:shared]))


def overheads_of(values: Values, number: int) -> Values:
    """Return the values of one model."""
    return values[OVERHEADS * number : OVERHEADS * (number + 1)]


def with_overheads(profile: Profile, overheads: Values) -> Profile:
    """Return the kernels' profile with what serving adds to it; what is negligible is 0."""
    factor, host_ms, host_sequence_ms, half, prefill_step_ms, share, ms = overheads
    time = replace(
        profile.time,
        overhead_factor=factor,
        host_ms=host_ms,
        host_sequence_ms=host_sequence_ms,
        host_half_sequences=float(np.exp(half)),
        prefill_step_ms=prefill_step_ms if prefill_step_ms > NONE else 0.0,
    )
    return replace(profile, time=time, stalls=Stalls(share, ms) if share > NONE else NO_STALLS)


def row_errors(profile: Profile, row: SteadyState, lengths: Lengths) -> list[float]:
    """Return the weighted logarithms of simulated / measured, for what was measured."""
    run = simulate(profile, profile.kv_blocks, row, lengths)
    return [
        weight * float(np.log(getattr(run, metric) / measured))
        for metric, weight in WEIGHTS.items()
        if (measured := getattr(row, metric)) is not None
    ]
