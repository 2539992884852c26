"""Envoy's adaptive concurrency: a limit on requests outstanding that follows their latency.

https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/adaptive_concurrency_filter.
The defaults are Envoy's, but for `update_s`: its 0.1 s is for answers of milliseconds.
"""

import math
import random
from typing import Annotated

from pydantic import Field

from bellman.admission.base import UNAVAILABLE, Arrival, Outcome, Permit, Refusal
from bellman.errors import require
from bellman.schema import Count, NotNegative, Positive, Share, Whole, schema
from bellman.sensing.observation import Observation

GRADIENTS = (0.5, 2.0)
"""The limit at most halves or doubles at a time."""
AT_SMALLEST = 5
"""After so many updates that leave it the smallest, the minimal latency is measured again."""


@schema
class GradientLimit:
    """Refuse (503) while as many admitted requests are out as the limit allows.

    limit = gradient x limit + sqrt(gradient x limit), once every `update_s` in which a request
    ended well, with gradient = clip(minRTT (1 + buffer) / latency, 0.5, 2). minRTT is measured at
    the start and every `measure_every_s`: until `measured_requests` have ended, only
    `smallest_limit` may be out at once.
    """

    update_s: Positive = 1.0
    percentile: Share = 0.5
    """Which of the latencies stands for all of a window, of an update's and of minRTT's."""
    smallest_limit: Count = 3
    largest_limit: Count = 1000
    measure_every_s: Positive = 60.0
    measured_requests: Count = 50
    jitter: Annotated[float, Field(ge=0, lt=1)] = 0.15
    """Largest share of `measure_every_s` that is added at random."""
    buffer: NotNegative = 0.25
    """Share of minRTT by which latency may vary without congestion."""
    seed: Whole = 1
    """Of the jitter; it is the same in every episode."""

    def __post_init__(self) -> None:
        """Check that the limits are in order."""
        least = f"must be at least smallest_limit={self.smallest_limit}"
        in_order = self.largest_limit >= self.smallest_limit
        require(in_order, "largest_limit", self.largest_limit, least)

    def open(self) -> "GradientDoor":
        """Return a door that has still to measure the minimal latency."""
        return GradientDoor(self)


class GradientDoor:
    """The limit, and the latencies since it was set."""

    def __init__(self, rule: GradientLimit) -> None:
        self._rule = rule
        self._random = random.Random(f"gradient limit {rule.seed}")
        self.limit = rule.smallest_limit
        self.out = 0
        """Admitted requests that have not ended."""
        self.min_rtt_s: float | None = None
        self._latencies_s: list[float] = []
        self._measuring = True
        self._limit_before = rule.smallest_limit
        self._epoch_s = -math.inf
        """What was sent before says nothing: it ran beside more than the limit allows."""
        self._measure_s = math.inf
        self._update_s: float | None = None
        self._at_smallest = 0

    def acquire(self, arrival: Arrival, observation: Observation, now_s: float) -> Permit | Refusal:
        """Refuse at the limit."""
        self._advance(now_s)
        if self.out >= self.limit:
            return Refusal(UNAVAILABLE, f"gradient limit: {self.out} out, limit {self.limit}")
        self.out += 1

        def done(outcome: Outcome, ended_s: float) -> None:
            self._advance(ended_s)
            self.out -= 1
            if outcome == "ok" and now_s >= self._epoch_s:
                self._latencies_s.append(ended_s - now_s)
                if self._measuring and len(self._latencies_s) >= self._rule.measured_requests:
                    self._end_measurement(ended_s)

        return Permit(done)

    def _advance(self, now_s: float) -> None:
        """Do what was due until now."""
        if self._measuring:
            return
        if self._update_s is not None and now_s >= self._update_s:
            self._update(self._update_s)
            if self._measuring:
                return
            periods = math.floor((now_s - self._update_s) / self._rule.update_s) + 1
            self._update_s += periods * self._rule.update_s
        if now_s >= self._measure_s:
            self._measure(self._measure_s)

    def _update(self, now_s: float) -> None:
        """Set the limit by the latencies of the window that has ended; none leave it as it is."""
        if not self._latencies_s:
            return
        assert self.min_rtt_s is not None
        rule = self._rule
        ideal_s = self.min_rtt_s * (1 + rule.buffer)
        gradient = min(max(ideal_s / self._typical_s(), GRADIENTS[0]), GRADIENTS[1])
        scaled = gradient * self.limit
        wanted = int(scaled + math.sqrt(scaled))
        self.limit = max(rule.smallest_limit, min(rule.largest_limit, wanted))
        self._at_smallest = self._at_smallest + 1 if self.limit == rule.smallest_limit else 0
        if self._at_smallest >= AT_SMALLEST:
            self._measure(now_s)

    def _measure(self, now_s: float) -> None:
        """Begin to measure the minimal latency."""
        self._measuring = True
        self._at_smallest = 0
        self._limit_before, self.limit = self.limit, self._rule.smallest_limit
        self._latencies_s.clear()
        self._epoch_s = now_s

    def _end_measurement(self, now_s: float) -> None:
        """Take the minimal latency, and go on with the limit from before."""
        rule = self._rule
        self.min_rtt_s = self._typical_s()
        self._measuring = False
        self.limit = self._limit_before
        every_s = rule.measure_every_s
        self._measure_s = now_s + every_s * (1 + rule.jitter * self._random.random())
        self._update_s = now_s + rule.update_s

    def _typical_s(self) -> float:
        """Return the percentile of the latencies (nearest rank), and forget them."""
        ordered = sorted(self._latencies_s)
        self._latencies_s.clear()
        rank = math.ceil(self._rule.percentile * len(ordered))
        return max(ordered[rank - 1], 1e-9)
