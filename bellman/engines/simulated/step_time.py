"""How long a step takes: kernels by roofline, plus what measured serving adds to them."""

import math

from bellman.schema import NotNegative, Positive, schema


@schema
class StepTime:
    """Coefficients of the step time, in milliseconds.

    gemm    = hypot(floor_ms, token_ms * (prefill tokens + sequences))
    kernels = gemm + pair_ms * prefill pairs + kv_token_ms * kv tokens + sequence_ms * sequences
    host    = host_ms + host_sequence_ms * sequences / (1 + sequences / host_half_sequences)
    step    = overhead_factor * kernels + host (+ prefill_step_ms, where it reads prompts)

    The root of squares is a roofline with a round knee: it halves the error of the sharp one.
    Affine in the kv tokens for a given batch, so a run of decode steps has a closed form.
    """

    floor_ms: Positive
    """Matrix products of a small step: the weights are read once however few tokens there are."""
    token_ms: NotNegative
    """Matrix products, a token, once compute is the limit."""
    pair_ms: NotNegative
    """Prefill attention, a (query, key) pair."""
    kv_token_ms: NotNegative
    """Decode attention, a token of context."""
    sequence_ms: NotNegative
    """Kernels, a decoding sequence."""
    overhead_factor: Positive
    """Measured serving / kernels."""
    host_ms: NotNegative
    """Work of the host that no kernel hides, a step."""
    host_sequence_ms: NotNegative
    """The same, a decoding sequence of a small batch."""
    host_half_sequences: Positive
    """Batch at which the host's time a sequence has fallen to half of that."""
    prefill_step_ms: NotNegative = 0.0
    """What a step costs for reading prompts at all, however short: such a step cannot be replayed
    as one recorded CUDA graph."""

    def seconds(
        self,
        prefill_tokens: float,
        prefill_pairs: float,
        sequences: float,
        kv_tokens: float,
        *,
        reading: float | None = None,
    ) -> float:
        """Return the seconds of one step; means of many steps need not be whole numbers.

        `reading` is the share of the steps that read prompts, where it is a mean of many.
        """
        if reading is None:
            reading = float(prefill_tokens > 0)
        kernels_ms = (
            math.hypot(self.floor_ms, self.token_ms * (prefill_tokens + sequences))
            + self.pair_ms * prefill_pairs
            + self.kv_token_ms * kv_tokens
            + self.sequence_ms * sequences
        )
        host_ms = self.host_ms + self.host_sequence_ms * sequences / (
            1 + sequences / self.host_half_sequences
        )
        prefill_ms = self.prefill_step_ms * reading
        return 1e-3 * (self.overhead_factor * kernels_ms + host_ms + prefill_ms)

    def kv_token_s(self) -> float:
        """Return the seconds that one more token of context adds to a step."""
        return 1e-3 * self.overhead_factor * self.kv_token_ms
