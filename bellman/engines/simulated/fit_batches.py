"""Fits step time and front end to measured batches: the simulation takes as long as they did."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from bellman.admission.accept_all import AcceptAll
from bellman.controllers.none import NoControl
from bellman.engines.base import Control
from bellman.engines.batches import Batch, BatchTimes, run_batch
from bellman.engines.simulated.engine import RunningSimulatedEngine, SimulatedEngine
from bellman.engines.simulated.front_end import FrontEnd
from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.step_time import StepTime
from bellman.responses.base import Response

Vector = NDArray[np.float64]
NO_CONTROL = Control(NoControl(), AcceptAll(), 1000.0)
START = StepTime(
    floor_ms=10.0,
    token_ms=1.0,
    pair_ms=1e-4,
    kv_token_ms=1e-3,
    sequence_ms=1.0,
    overhead_factor=1.0,
    host_ms=0.0,
    host_sequence_ms=0.0,
    host_half_sequences=1.0,
)
"""Where the fit starts; the coefficients that are 0 or 1 here stay so."""
START_FRONT_END = FrontEnd(mean_ms=10.0, variation=0.4)
"""The same. The variation is assumed, as in the profiles: without any the requests of a batch would
reach the engine together, and what their spread costs would be taken for the engine's time."""
FITTED = ("floor_ms", "token_ms", "pair_ms", "kv_token_ms", "sequence_ms")
NEGLIGIBLE = 1e-6
"""A coefficient may fall to this share of its start, which is as good as 0."""


class NoAnswers:
    """A bank for runs whose lengths are all forced."""

    kind = "none"
    length_compliance = None
    answers_concise = False

    def lookup(self, document_id: str, asked_words: int | None) -> Response:
        """Never asked."""
        raise AssertionError("a forced length needs no bank")

    def count_tokens(self, text: str) -> int | None:
        """Return None: the batches say how long their prompts are."""
        return None


def fit_batches(
    config: SimulatedEngine, measured: Sequence[tuple[Batch, BatchTimes]]
) -> tuple[Profile, Vector]:
    """Return the profile of the engine that took these times, and the relative errors.

    Least squares of the logarithms of both times of every batch: its mean first token and its last
    one. The errors are in that order, batch by batch.
    """
    times = np.array([(times.first_s, times.last_s) for _, times in measured]).ravel()

    def residuals(logarithms: Vector) -> Vector:
        trial = replace(config, profile=with_times(config.profile, logarithms))
        simulated = simulate(trial, measured)
        errors: Vector = np.log(simulated / times)
        return errors

    start = np.log([START_FRONT_END.mean_ms, *(getattr(START, name) for name in FITTED)])
    lower = start + np.log(NEGLIGIBLE)
    fit = least_squares(
        residuals, start, bounds=(lower, start + np.log(1e4)), diff_step=1e-3, loss="soft_l1",
        f_scale=0.05,
    )  # fmt: skip
    return with_times(config.profile, fit.x), np.expm1(residuals(fit.x))


def with_times(profile: Profile, logarithms: Vector) -> Profile:
    """Return the profile with the fitted coefficients, given by their logarithms."""
    mean_ms, *values = map(float, np.exp(logarithms))
    return replace(
        profile,
        front_end=replace(START_FRONT_END, mean_ms=mean_ms),
        time=replace(START, **dict(zip(FITTED, values, strict=True))),
    )


def simulate(config: SimulatedEngine, measured: Sequence[tuple[Batch, BatchTimes]]) -> Vector:
    """Return both times of every batch on the simulated engine, which is idle before each."""
    engine = RunningSimulatedEngine(config, NoAnswers())

    async def run_all() -> list[tuple[float, float]]:
        found = []
        for batch, times in measured:
            async with engine.session(NO_CONTROL) as session:
                simulated = await run_batch(session, batch, "", times.prompt_tokens)
            found.append((simulated.first_s, simulated.last_s))
        return found

    with asyncio.Runner(loop_factory=engine.loop_factory) as runner:
        result: Vector = np.array(runner.run(run_all())).ravel()
    return result
