"""Observations of an engine whose every number follows from a few."""

from collections.abc import Iterator
from dataclasses import dataclass

from bellman.sensing.observation import Observation


@dataclass
class ObservedEngine:
    """A batch at a constant load: what its counters and gauges show, period by period."""

    tokens: float = 400.0
    """Of an answer."""
    base_s: float = 0.006
    sequence_s: float = 0.00015
    places: int = 400
    time_s: float = 0.0
    generated: float = 0.0
    finished: float = 0.0
    e2e_sum_s: float = 0.0

    def step_s(self, running: int) -> float:
        return self.base_s + self.sequence_s * running

    def observe(self, outstanding: int, dt_s: float = 1.0) -> Observation:
        """Let `dt_s` pass with so many requests in the engine."""
        running = min(outstanding, self.places)
        waiting = outstanding - running
        tokens = running * dt_s / self.step_s(running)
        finished = tokens / self.tokens
        wait_s = waiting / finished * dt_s if finished else 0.0
        self.time_s += dt_s
        self.generated += tokens
        self.finished += finished
        self.e2e_sum_s += finished * (self.tokens * self.step_s(running) + wait_s)
        return Observation(
            time_s=self.time_s,
            waiting=waiting,
            running=running,
            kv_usage=running / self.places,
            outstanding_tokens=outstanding * self.tokens / 2,
            prompt_tokens_total=int(1000 * self.finished),
            generated_tokens_total=int(self.generated),
            preemptions_total=0,
            completed_total=int(self.finished),
            oldest_waiting_s=wait_s,
            queue_delay_sum_s=0.0,
            queue_delay_count=int(self.finished),
            ttft_sum_s=0.0,
            ttft_count=int(self.finished),
            e2e_sum_s=self.e2e_sum_s,
            e2e_count=int(self.finished),
        )


def levels(law: object, observations: Iterator[Observation], dt_s: float = 1.0) -> list[float]:
    """Return the law's level after each observation."""
    state = law.start()
    found = []
    for observation in observations:
        state = law.update(state, observation, dt_s)
        found.append(state.level)
    return found
