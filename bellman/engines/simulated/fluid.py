"""A fluid model beside the simulated engine: no request, no step, a few differential equations.

    dQ/dt = lambda L - C        Q  tokens of the answers in the engine, each counted whole
    dN/dt = lambda - C N / Q    N  requests in the engine; Q / N is their mean length
    C = n / step                n = min(N, max_num_seqs) sequences get a token each a step

lambda is the mean offered rate, L the mean length that is asked for now. The step is that of the
profile for n sequences in the middle of their answers, with the prompts that arrive meanwhile. The
law runs once a period on N, with the class that runs on a server. What it leaves out: the
randomness of arrivals and lengths, and that those who came first are done first.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from bellman.controllers.base import Controller
from bellman.controllers.step import step
from bellman.engines.simulated.step_time import StepTime
from bellman.load.schedule import Phase
from bellman.sensing.observation import Observation

LEAST = 1e-6
"""Requests in an empty engine: a mean length has no value without any."""
ITERATIONS = 8


@dataclass(frozen=True)
class Lengths:
    """Mean tokens of a prompt and of an answer."""

    prompt_tokens: float
    output_tokens: float


@dataclass(frozen=True)
class FluidEngine:
    """What serves the fluid."""

    time: StepTime
    max_num_seqs: int
    prompt_tokens: float

    def step_s(self, sequences: float, length_tokens: float, rate_rps: float) -> float:
        """Return how long a step takes while prompts arrive at `rate_rps`: a fixed point."""
        step_s = 0.0
        for _ in range(ITERATIONS):
            prompts = rate_rps * step_s
            step_s = self.time.seconds(
                prompts * self.prompt_tokens,
                prompts * self.prompt_tokens**2 / 2,
                sequences,
                sequences * (self.prompt_tokens + length_tokens / 2),
                reading=-math.expm1(-prompts),  # Poisson arrivals: not none of them in a step
            )
        return step_s

    def tokens_per_s(self, requests: float, length_tokens: float, rate_rps: float) -> float:
        """Return C, the output tokens per second."""
        sequences = min(requests, float(self.max_num_seqs))
        return sequences / self.step_s(sequences, length_tokens, rate_rps)


@dataclass(frozen=True)
class FluidPoint:
    """The fluid at one instant."""

    time_s: float
    outstanding: float
    level: float


def predict(
    engine: FluidEngine,
    phases: Sequence[Phase],
    controller: Controller,
    output_tokens: Callable[[float], float],
    *,
    period_s: float,
    end_s: float,
) -> list[FluidPoint]:
    """Return the fluid once a control period, from an empty engine on.

    `output_tokens` is the mean length of an answer to a request sent at a level. Raises ValueError
    for a law whose level is no number.
    """
    law = controller.start()
    state = np.array([LEAST, LEAST * output_tokens(0.0)])
    points: list[FluidPoint] = []
    for number in range(int(end_s / period_s) + 1):
        time_s = number * period_s
        requests = round(float(state[0]))
        running = min(requests, engine.max_num_seqs)
        seen = Observation(time_s, requests - running, running)
        law, level = step(controller, law, seen, period_s)
        points.append(FluidPoint(time_s, float(state[0]), level))
        length_tokens = output_tokens(level)
        rate_rps = rate_at(phases, time_s)

        def change(
            _: float,
            state: NDArray[np.float64],
            rate_rps: float = rate_rps,
            length_tokens: float = length_tokens,
        ) -> list[float]:
            requests, tokens = max(state[0], LEAST), max(state[1], LEAST)
            mean_tokens = max(1.0, tokens / requests)
            done = engine.tokens_per_s(requests, mean_tokens, rate_rps)
            return [rate_rps - done / mean_tokens, rate_rps * length_tokens - done]

        solved = solve_ivp(change, (0.0, period_s), state, method="LSODA", rtol=1e-4, atol=1e-3)
        state = np.maximum(solved.y[:, -1], [LEAST, LEAST])
    return points


def rate_at(phases: Sequence[Phase], time_s: float) -> float:
    """Return the mean offered rate, in requests per second; 0 after the last phase."""
    for phase in phases:
        if phase.start_s <= time_s < phase.end_s:
            return phase.rate_rps
    return 0.0
