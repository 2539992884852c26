"""Fits the kernels' coefficients of the step time to step times."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from bellman.engines.simulated.step_time import StepTime

Vector = NDArray[np.float64]


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
