"""A circuit breaker: after too many failures ask for a while nobody, then try a few.

Nygard, "Release It!" (2007). It stands where a client's proxy does, before another admission: that
one's refusals are its failures.
"""

import math
from typing import Any, Literal

from bellman.admission.base import UNAVAILABLE, Admission, Arrival, Outcome, Permit, Refusal
from bellman.admission.window import OutcomeWindow
from bellman.errors import require
from bellman.schema import Count, Positive, Share, schema
from bellman.sensing.observation import Observation


@schema
class Breaker:
    """Refuse (503) while open. A request fails by a refusal behind, an error, a client that left.

    closed: everything passes; opens when at least `failures` of the outcomes of the last `window_s`
    are failures, of `least_requests` or more. open: nothing passes for `open_s`. half-open:
    `probes` requests pass; it closes when all of them have ended well, and opens at a failure.
    """

    admission: Any
    """The admission behind it."""
    failures: Share = 0.5
    least_requests: Count = 20
    window_s: Positive = 10.0
    open_s: Positive = 10.0
    probes: Count = 5

    def __post_init__(self) -> None:
        """Check that what stands behind is an admission."""
        is_admission = callable(getattr(self.admission, "open", None))
        require(is_admission, "admission", self.admission, "must be an option of admission")

    def open(self) -> "BreakerDoor":
        """Return a closed breaker before an open door."""
        return BreakerDoor(self, self.admission)


class BreakerDoor:
    """The breaker's state."""

    def __init__(self, rule: Breaker, admission: Admission) -> None:
        self._rule = rule
        self._behind = admission.open()
        self.state: Literal["closed", "open", "half-open"] = "closed"
        self._changes = 0
        """Of the state: what began before the last one says nothing of now."""
        self._window = OutcomeWindow(rule.window_s)
        self._until_s = 0.0
        """When an open one becomes half-open."""
        self._probes_left = 0
        self._probes_ended = 0

    def acquire(self, arrival: Arrival, observation: Observation, now_s: float) -> Permit | Refusal:
        """Refuse while open, and what is not among the probes; else ask behind."""
        if self.state == "open" and now_s >= self._until_s:
            self._change("half-open")
            self._probes_left = self._rule.probes
            self._probes_ended = 0
        if self.state == "open":
            wait_s = max(1, math.ceil(self._until_s - now_s))
            return Refusal(UNAVAILABLE, "circuit breaker: open", wait_s)
        if self.state == "half-open":
            if not self._probes_left:
                return Refusal(UNAVAILABLE, "circuit breaker: half-open, its probes are out")
            self._probes_left -= 1
        began = self._changes
        entry = self._behind.acquire(arrival, observation, now_s)
        if isinstance(entry, Refusal):
            self._note(began, good=False, now_s=now_s)
            return entry

        def done(outcome: Outcome, ended_s: float) -> None:
            entry.done(outcome, ended_s)
            self._note(began, good=outcome == "ok", now_s=ended_s)

        return Permit(done)

    def _note(self, began: int, *, good: bool, now_s: float) -> None:
        """Take how a request ended that passed before, or in, the present state."""
        if began != self._changes:
            return
        if self.state == "closed":
            window = self._window
            window.add(good, now_s)
            failed = window.total - window.good
            enough = window.total >= self._rule.least_requests
            if enough and failed >= self._rule.failures * window.total:
                self._break(now_s)
        elif not good:
            self._break(now_s)
        else:
            self._probes_ended += 1
            if self._probes_ended == self._rule.probes:
                self._change("closed")
                self._window = OutcomeWindow(self._rule.window_s)

    def _break(self, now_s: float) -> None:
        self._change("open")
        self._until_s = now_s + self._rule.open_s

    def _change(self, state: Literal["closed", "open", "half-open"]) -> None:
        self.state = state
        self._changes += 1
