"""Envoy's admission control: refuse at random, the likelier the fewer requests end well.

https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/admission_control_filter,
after the client-side throttling of Google's SRE book. The defaults are Envoy's. Envoy calls an
answer good by its status; a language model under congestion answers 200, late, so that ours must
also be whole within `good_s`.
"""

import random

from bellman.admission.base import UNAVAILABLE, Arrival, Outcome, Permit, Refusal
from bellman.admission.window import OutcomeWindow
from bellman.schema import Positive, Share, Whole, schema
from bellman.sensing.observation import Observation


@schema
class Shed:
    """Refuse (503) with probability ((n - s / threshold) / (n + 1)) ^ (1 / aggression).

    n requests ended within the last `window_s`, s of them good; one that was refused is none.
    """

    good_s: Positive
    """An answer that takes longer is no good one (ours)."""
    threshold: Share = 0.95
    """Share of good answers from which on nothing is refused."""
    aggression: Positive = 1.0
    """1: the probability rises as the share of good answers falls; above: sooner."""
    window_s: Positive = 30.0
    largest_probability: Share = 0.8
    seed: Whole = 1
    """Of the draws; they are the same in every episode."""

    def open(self) -> "SheddingDoor":
        """Return a door that has seen nothing."""
        return SheddingDoor(self)


class SheddingDoor:
    """Counts how the admitted requests ended."""

    def __init__(self, rule: Shed) -> None:
        self._rule = rule
        self._window = OutcomeWindow(rule.window_s)
        self._random = random.Random(f"shed {rule.seed}")

    def probability(self, now_s: float) -> float:
        """Return the chance that a request is refused now."""
        rule, window = self._rule, self._window
        window.forget(now_s)
        excess = (window.total - window.good / rule.threshold) / (window.total + 1)
        return float(min(rule.largest_probability, max(0.0, excess) ** (1 / rule.aggression)))

    def acquire(self, arrival: Arrival, observation: Observation, now_s: float) -> Permit | Refusal:
        """Refuse by chance."""
        probability = self.probability(now_s)
        if self._random.random() < probability:
            return Refusal(UNAVAILABLE, f"shed with probability {probability:.3f}")

        def note(outcome: Outcome, ended_s: float) -> None:
            self._window.add(outcome == "ok" and ended_s - now_s <= self._rule.good_s, ended_s)

        return Permit(note)
