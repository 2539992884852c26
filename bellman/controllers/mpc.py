"""Our own law: the longest answers whose predicted latency still meets the limit."""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from bellman.controllers.fluid import Load, served_tokens
from bellman.controllers.step_model import NOTHING_KNOWN, StepModel
from bellman.schema import Positive, Share, schema
from bellman.sensing.growth import growth, require_reported
from bellman.sensing.observation import Observation


@dataclass(frozen=True, slots=True)
class Estimates:
    """What has been identified so far, as exponential averages."""

    steps: StepModel = NOTHING_KNOWN
    arrivals_rps: float = 0.0
    """Below 0 where requests leave that were not counted as finished."""
    generated: float = 0.0
    """Output tokens, with forgetting."""
    answers: float = 0.0
    """Answers that those tokens are, each by the scale it was asked at, forgotten as fast: one for
    a request that finished and a half for one that joined the batch, where it is half done."""
    asked_scale: float = 1.0
    """Mean scale of the requests in the engine: the published one, one latency late."""

    @property
    def default_tokens(self) -> float | None:
        """Mean length of an answer at scale 1; None until one has begun."""
        return self.generated / self.answers if self.answers > 0 else None


NOTHING_IDENTIFIED = Estimates()


@dataclass(frozen=True, slots=True)
class MpcState:
    """State: the scale, the estimates and the last observation."""

    scale: float = 1.0
    estimates: Estimates = NOTHING_IDENTIFIED
    last: Observation | None = None

    @property
    def level(self) -> float:
        """1 - scale."""
        return 1.0 - self.scale


@schema
class Mpc:
    """The largest scale at which a request sent now would be done within the limit.

    Each period: identify the step time by the batch, the arrival rate and the mean length of an
    answer at scale 1; predict the batch over the next `limit_e2e_s` for each scale that the
    application would really take (its ladder's), with all coming requests at that scale; take
    the largest at which an answer of `length_margin` times the mean length that begins now has
    all its tokens in time. The prediction is `bellman.controllers.fluid`. Mean lengths are all it
    sees: it takes answers to shrink as the scale does, and corrects their mean by what comes out.
    Level = 1 - scale.
    """

    limit_e2e_s: Positive
    """E2e latency that an answer may have, seconds: the SLO's own limit, not a mean."""
    length_margin: Annotated[float, Field(ge=1)]
    """The answer that must be in time / the mean length (ours)."""
    ladder_ratio: Annotated[float, Field(gt=1.01)]
    """Ratio of neighbouring budgets of the application."""
    alpha_min: Share
    """Smallest scale: below it the application would not go."""
    memory_s: Positive
    """Time constant of the averages of step times and lengths (ours)."""

    def start(self) -> MpcState:
        """Return scale 1, with nothing identified."""
        return MpcState()

    def update(self, state: MpcState, observation: Observation, dt_s: float) -> MpcState:
        """Identify, predict, decide; until an answer has begun the scale is 1."""
        require_reported(observation, self, "generated_tokens_total", "completed_total")
        if state.last is None:
            return MpcState(last=observation)
        estimates = self._identify(state, state.last, observation, dt_s)
        tokens = estimates.default_tokens
        if tokens is None or not estimates.steps.known:
            return MpcState(state.scale, estimates, observation)
        base_s, sequence_s = estimates.steps.coefficients()
        load = Load(
            outstanding=observation.outstanding,
            places=batch_places(observation, estimates.arrivals_rps * dt_s),
            tokens=max(1.0, tokens * estimates.asked_scale),
            arrivals_rps=max(0.0, estimates.arrivals_rps),
            base_s=base_s,
            sequence_s=sequence_s,
        )
        for scale in self.scales():
            wanted = max(1.0, tokens * scale)
            served = served_tokens(load, wanted, self.limit_e2e_s)
            if served >= self.length_margin * wanted:
                break
        return MpcState(scale, estimates, observation)

    def scales(self) -> list[float]:
        """Return what the application can ask for, from 1 down to `alpha_min`."""
        rungs = math.floor(math.log(1 / self.alpha_min, self.ladder_ratio) + 1e-6)
        return [self.ladder_ratio**-rung for rung in range(rungs + 1)]

    def _identify(
        self, state: MpcState, last: Observation, now: Observation, dt_s: float
    ) -> Estimates:
        """Take in what happened since the last observation; nothing where a counter went back."""
        old = state.estimates
        generated = growth(last, now, "generated_tokens_total")
        finished = growth(last, now, "completed_total")
        if generated is None or finished is None:
            return old
        keep = math.exp(-dt_s / self.memory_s)
        running = (last.running + now.running) / 2
        steps = old.steps
        if generated > 0 and running > 0:
            steps = steps.add(running, running * dt_s / generated, keep)
        answers = finished + (now.running - last.running) / 2
        arrived_rps = (now.outstanding - last.outstanding + finished) / dt_s
        toward = 1 - math.exp(-dt_s / self.limit_e2e_s)
        arrivals_rps = old.arrivals_rps + toward * (arrived_rps - old.arrivals_rps)
        # Of those in the engine, so many have been replaced by ones asked at the present scale.
        replaced = min(1.0, finished / last.outstanding) if last.outstanding > 0 else 1.0
        return Estimates(
            steps,
            arrivals_rps,
            keep * old.generated + generated,
            keep * old.answers + answers * old.asked_scale,
            old.asked_scale + replaced * (state.scale - old.asked_scale),
        )


def batch_places(observation: Observation, arrived: float) -> float:
    """Return how many requests the batch can hold, as far as it shows; infinity where it does not.

    More waiting than have arrived since the last look: it is full. Else the KV cache tells, of
    which each running request has the same part.
    """
    if observation.waiting > arrived:
        return max(1.0, observation.running)
    if observation.kv_usage:
        return max(1.0, observation.running / observation.kv_usage)
    return math.inf
