"""What a control law may look at: one snapshot of the engine's load."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Observation:
    """The engine's load at one instant. A quantity the engine does not report is None, never 0."""

    time_s: float
    """Seconds of the run's clock (the server's own clock where the law runs in the server)."""
    waiting: int
    """Requests accepted but not yet in the batch."""
    running: int
    """Requests in the batch, prefill and decode."""
    kv_usage: float | None = None
    """Share of KV cache blocks in use, in [0, 1]."""
    outstanding_tokens: float | None = None
    """Tokens the engine still has to process for its outstanding requests, as far as known."""
    prompt_tokens_total: int | None = None
    """Prompt tokens processed since the engine started (recomputed ones not counted again)."""
    generated_tokens_total: int | None = None
    """Output tokens generated since the engine started."""
    preemptions_total: int | None = None
    """Preemptions since the engine started."""
    completed_total: int | None = None
    """Requests finished since the engine started."""
    oldest_waiting_s: float | None = None
    """Seconds since the arrival of the request that has waited longest; 0 where none waits."""
    queue_delay_sum_s: float | None = None
    """Seconds from arrival to first place in the batch, summed over the requests finished since
    the engine started. What vLLM reports: a delay is known when the whole request is done."""
    queue_delay_count: int | None = None
    """Requests in `queue_delay_sum_s`."""
    ttft_sum_s: float | None = None
    """Seconds from arrival to first token, summed over the requests that have one."""
    ttft_count: int | None = None
    """Requests in `ttft_sum_s`."""
    e2e_sum_s: float | None = None
    """Seconds from arrival to last token, summed over the requests finished since the start."""
    e2e_count: int | None = None
    """Requests in `e2e_sum_s`."""

    @property
    def outstanding(self) -> int:
        """Requests in the engine, running and waiting: the Q of the queue law."""
        return self.running + self.waiting
