"""The performance model of one language model on one server, with the range it was fitted on."""

from dataclasses import field

from msgspec import Struct

from bellman.engines.simulated.front_end import FrontEnd
from bellman.engines.simulated.stalls import NO_STALLS, Stalls
from bellman.engines.simulated.step_energy import StepEnergy
from bellman.engines.simulated.step_time import StepTime
from bellman.schema import Count, Name, Positive, Whole, schema


class ExtrapolationWarning(UserWarning):
    """A run left the range that its profile was fitted on."""


def growing_sum(first: float, increment: float, steps: int) -> float:
    """Return first + (first + increment) + ... over `steps` terms."""
    return steps * first + increment * (0.5 * steps * (steps - 1))


class AffineSteps(Struct, frozen=True):
    """Steps whose time and energy grow by a constant from one to the next."""

    first_s: float
    increment_s: float
    first_j: float
    """Before the power limit."""
    increment_j: float
    power_limit_w: float

    def seconds(self, steps: int) -> float:
        """Return how long the first `steps` steps take."""
        return growing_sum(self.first_s, self.increment_s, steps)

    def joules(self, steps: int) -> float:
        """Return the energy of the first `steps` steps, each held to the power limit.

        The excess over the limit is affine too, so it changes its sign at most once in a run.
        """
        first = self.first_j - self.power_limit_w * self.first_s
        increment = self.increment_j - self.power_limit_w * self.increment_s
        unlimited_j = growing_sum(self.first_j, self.increment_j, steps)
        last = first + increment * (steps - 1)
        if first <= 0 and last <= 0:
            return unlimited_j
        if first >= 0 and last >= 0:
            return unlimited_j - growing_sum(first, increment, steps)
        until = min(steps, int(-first / increment) + 1)  # steps before the sign changes
        if first > 0:
            return unlimited_j - growing_sum(first, increment, until)
        return unlimited_j - growing_sum(first + increment * until, increment, steps - until)


@schema
class FittedRange:
    """What the coefficients were fitted on; a run that leaves it is extrapolation."""

    sequences: Whole
    """Largest batch."""
    kv_tokens: Whole
    """Largest sum of context lengths."""
    prefill_tokens: Whole
    """Most prefill tokens in a step."""
    tokenizer: str = ""
    """Family of the tokenizer: the prompts below were fitted for all its profiles together."""
    prompt_tokens: dict[str, Positive] = field(default_factory=dict)
    """Mean prompt length of the measured steady states by task, as fitted or assumed."""
    prompt_variation: Positive = 1.0
    """Standard deviation / mean of those prompts."""
    rows_digest: str = ""
    """SHA-256 of the file of steady states; every other row of the model was fitted on."""

    def exceeded_by(self, sequences: int, kv_tokens: int, prefill_tokens: int) -> list[str]:
        """Return what is out of the range, in words."""
        limits = (
            ("sequences in the batch", self.sequences, sequences),
            ("tokens of context in the batch", self.kv_tokens, kv_tokens),
            ("prefill tokens in a step", self.prefill_tokens, prefill_tokens),
        )
        return [f"more than {limit} {name}" for name, limit, value in limits if value > limit]


@schema
class Profile:
    """A performance model with its provenance."""

    model: Name
    devices: str
    source: str
    """Where the coefficients come from."""
    kv_blocks: Count
    """KV cache blocks of 16 tokens that this server has with vLLM's default settings."""
    front_end: FrontEnd
    time: StepTime
    energy: StepEnergy
    fitted: FittedRange
    stalls: Stalls = NO_STALLS

    @property
    def idle_w(self) -> float:
        """Watts of all devices when no step runs."""
        return self.energy.idle_w

    def steps(
        self, prefill_tokens: int, prefill_pairs: int, sequences: int, kv_tokens: int
    ) -> AffineSteps:
        """Return the cost of a step and, if it has no prefill, of those that follow it."""
        first_s = self.time.seconds(prefill_tokens, prefill_pairs, sequences, kv_tokens)
        increment_s = self.time.kv_token_s() * sequences
        return AffineSteps(
            first_s,
            increment_s,
            self.energy.unlimited_joules(first_s, prefill_tokens, sequences, kv_tokens),
            self.energy.idle_w * increment_s + self.energy.kv_token_j * sequences,
            self.energy.power_limit_w,
        )
