"""Running totals of how long requests took, as a vLLM server counts them in its histograms."""

from dataclasses import dataclass

from bellman.engines.simulated.sequence import Sequence


@dataclass(slots=True)
class DelayTotals:
    """Sums in seconds since the engine's start; fields as in `Observation`."""

    queue_delay_sum_s: float = 0.0
    ttft_sum_s: float = 0.0
    ttft_count: int = 0
    e2e_sum_s: float = 0.0
    finished: int = 0

    def begin(self, sequence: Sequence) -> None:
        """Take a sequence in that has its first token."""
        self.ttft_sum_s += sequence.first_token_s - sequence.arrival_s
        self.ttft_count += 1

    def finish(self, sequence: Sequence) -> None:
        """Take a sequence in that has its last token: only now vLLM tells its queue delay, too."""
        self.queue_delay_sum_s += sequence.admitted_s - sequence.arrival_s
        self.e2e_sum_s += sequence.last_token_s - sequence.arrival_s
        self.finished += 1
