"""The engine's own limit on what is outstanding, as vLLM's `max_num_queued_reqs`: the rest is 503.

vLLM counts requests waiting and running, too (vllm-project/vllm#49445). Its limit on tokens counts
prompts that are not computed yet; ours counts all that the admitted requests may need.
"""

from bellman.admission.base import UNAVAILABLE, Arrival, Outcome, Permit, Refusal
from bellman.errors import require
from bellman.schema import Count, schema
from bellman.sensing.observation import Observation


@schema
class QueueLimit:
    """Refuse a request (503) while as much is outstanding in the engine as may be."""

    limit: Count | None = None
    """Outstanding requests, running and waiting; None sets no limit."""
    tokens: Count | None = None
    """Prompt tokens + max_tokens of the admitted requests that have not ended; None: no limit."""

    def __post_init__(self) -> None:
        """Check that there is a limit."""
        given = self.limit is not None or self.tokens is not None
        require(given, "limit", None, "must be given, or tokens")

    def open(self) -> "QueueDoor":
        """Return a door with nothing behind it."""
        return QueueDoor(self)


class QueueDoor:
    """Counts the tokens of the requests it let in; the requests are what the engine says."""

    def __init__(self, rule: QueueLimit) -> None:
        self._rule = rule
        self.tokens = 0
        """Of the requests that have not ended."""

    def acquire(self, arrival: Arrival, observation: Observation, now_s: float) -> Permit | Refusal:
        """Refuse when a limit is reached; a request alone is let in, whatever its tokens."""
        rule, outstanding, needed = self._rule, observation.outstanding, arrival.tokens
        if rule.limit is not None and outstanding >= rule.limit:
            reason = f"queue limit: {outstanding} outstanding, limit {rule.limit}"
            return Refusal(UNAVAILABLE, reason)
        if rule.tokens is not None and self.tokens and self.tokens + needed > rule.tokens:
            reason = f"queue limit: {self.tokens} + {needed} tokens, limit {rule.tokens}"
            return Refusal(UNAVAILABLE, reason)
        self.tokens += needed

        def leave(outcome: Outcome, now_s: float) -> None:
            self.tokens -= needed

        return Permit(leave)
