"""Fits the energy of a step to the measured power of steady states, within the cards' limit.

No source says how the energy of a step splits. Three assumptions do: a prefill that fills the GPU
draws the plateau of a full card; no component draws more than the cards' limit for the time that it
takes in this model; and a byte of KV cache costs the same in every model.
"""

from collections.abc import Sequence as Items

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from bellman.engines.simulated.saturated import SaturatedRun
from bellman.engines.simulated.steady_states import SteadyState
from bellman.engines.simulated.step_energy import StepEnergy
from bellman.engines.simulated.step_time import StepTime

Vector = NDArray[np.float64]
CARD_LIMIT_W = 700.0
"""TDP of an H100 SXM."""
CARD_PLATEAU_W = 690.0
"""What a full one draws on average: the highest measured watts a card, 690.5, Llama-3.1-8B."""
BELIEVED = np.array([0.6, 0.6, 0.9])
"""Where the fit starts: shares of the most that `step_j`, `sequence_j` and `kv_token_j` may be."""
BELIEF = 0.05
"""Residual of a share that is 1 away from that: decides what no row does (ours)."""


def component_seconds(time: StepTime) -> dict[str, float]:
    """Return what a step, and one more of each kind of token, takes in the model.

    `step_j` pays for the weights' reading and the host's part of a step; `sequence_j` for a
    decoding sequence's matrix products, kernels and host time.
    """
    factor = time.overhead_factor
    return {
        "step_j": 1e-3 * (factor * time.floor_ms + time.host_ms),
        "prefill_token_j": 1e-3 * factor * time.token_ms,
        "sequence_j": 1e-3 * (factor * (time.token_ms + time.sequence_ms) + time.host_sequence_ms),
        "kv_token_j": time.kv_token_s(),
    }


def fit_energy(
    time: StepTime,
    rows: Items[SteadyState],
    runs: Items[SaturatedRun],
    idle_w: float,
    kv_token_j: float | None,
    *,
    card_limit_w: float = CARD_LIMIT_W,
    card_plateau_w: float = CARD_PLATEAU_W,
) -> StepEnergy:
    """Fit the energy coefficients to watts; the runs come from the profile's own step times.

    `kv_token_j` is given where the rows cannot tell it (contexts of one length), and fitted where
    it is None; it, too, is held to the limit. No step draws more than the plateau.
    """
    gpus = rows[0].gpus
    limit_w = gpus * card_plateau_w
    seconds = component_seconds(time)
    most = {name: (gpus * card_limit_w - idle_w) * of_one_s for name, of_one_s in seconds.items()}
    given_kv_j = None if kv_token_j is None else min(kv_token_j, most["kv_token_j"])

    def candidate(shares: Vector) -> StepEnergy:
        step, sequence, kv = (float(share) for share in shares)
        return StepEnergy(
            idle_w=idle_w,
            power_limit_w=limit_w,
            step_j=step * most["step_j"],
            prefill_token_j=(limit_w - idle_w) * seconds["prefill_token_j"],
            sequence_j=sequence * most["sequence_j"],
            kv_token_j=kv * most["kv_token_j"] if given_kv_j is None else given_kv_j,
        )

    def residuals(shares: Vector) -> Vector:
        energy = candidate(shares)
        errors = [
            np.log(watts(energy, run) / row.watts) for row, run in zip(rows, runs, strict=True)
        ]
        return np.array([*errors, *(BELIEF * (shares - BELIEVED))])

    bounds = (np.zeros(len(BELIEVED)), np.ones(len(BELIEVED)))
    return candidate(least_squares(residuals, BELIEVED, bounds=bounds).x)


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
