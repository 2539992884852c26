"""What a step draws: idle watts for its whole time, energy for its work, and the power limit."""

from bellman.errors import require
from bellman.schema import NotNegative, schema


@schema
class StepEnergy:
    """Coefficients of the step energy; watts and joules are sums over the server's devices.

    energy = min(power_limit_w * step time,
                 idle_w * step time + step_j + prefill_token_j * prefill tokens
                 + sequence_j * sequences + kv_token_j * kv tokens)

    The split between the four is not published anywhere: it is a parameter.
    """

    idle_w: NotNegative
    power_limit_w: NotNegative
    """No step draws more."""
    step_j: NotNegative
    """A step, whatever is in it: the weights are read once."""
    prefill_token_j: NotNegative
    sequence_j: NotNegative
    """A token of a decoding sequence."""
    kv_token_j: NotNegative
    """A token of context that decode attention reads."""

    def __post_init__(self) -> None:
        """Check that idling is below the limit."""
        above = f"must be greater than idle_w={self.idle_w:g}"
        require(self.power_limit_w > self.idle_w, "power_limit_w", self.power_limit_w, above)

    def unlimited_joules(
        self, seconds: float, prefill_tokens: int, sequences: int, kv_tokens: int
    ) -> float:
        """Return the joules of one step of `seconds` before the power limit."""
        return (
            self.idle_w * seconds
            + self.step_j
            + self.prefill_token_j * prefill_tokens
            + self.sequence_j * sequences
            + self.kv_token_j * kv_tokens
        )
