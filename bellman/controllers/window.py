"""What a law saw since its last decision, for laws that decide once a round trip."""

from dataclasses import dataclass

from bellman.sensing.growth import growth, mean_s
from bellman.sensing.observation import Observation


@dataclass(frozen=True, slots=True)
class Window:
    """Observations from the last decision to now."""

    first: Observation | None = None
    last: Observation | None = None
    length_s: float = 0.0
    request_s: float = 0.0
    """Outstanding requests, summed over the time."""

    def add(self, observation: Observation, dt_s: float) -> "Window":
        """Return the window with an observation `dt_s` after the last one."""
        if self.first is None or self.last is None:
            return Window(observation, observation)
        outstanding = (self.last.outstanding + observation.outstanding) / 2
        return Window(
            self.first,
            observation,
            self.length_s + dt_s,
            self.request_s + outstanding * dt_s,
        )

    def next(self) -> "Window":
        """Return the window that begins where this one ends."""
        return Window(self.last, self.last)

    def mean_e2e_s(self) -> float | None:
        """Return the mean e2e latency of the requests that finished in it; None where none did.

        Where the engine was empty, too, nobody waits: 0.
        """
        if self.first is None or self.last is None:
            return None
        e2e_s = mean_s(self.first, self.last, "e2e")
        return 0.0 if e2e_s is None and self.request_s == 0 else e2e_s

    def token_latency_s(self) -> float | None:
        """Return the seconds that a request in the engine waited for each of its tokens.

        Outstanding requests x time / tokens generated: by Little's law the e2e latency of a token
        of output. It follows the load without the lag of finished requests, and does not fall only
        because answers get shorter. None where no token was generated.
        """
        if self.first is None or self.last is None:
            return None
        tokens = growth(self.first, self.last, "generated_tokens_total")
        return self.request_s / tokens if tokens and self.request_s > 0 else None


NOTHING_SEEN = Window()


@dataclass(frozen=True, slots=True)
class Scaled:
    """The state of a law on the scale of the answers' length."""

    scale: float = 1.0
    """Wanted length / default length."""
    window: Window = NOTHING_SEEN

    @property
    def level(self) -> float:
        """1 - scale: with the adaptation `linear` the application asks for just that scale."""
        return 1.0 - self.scale


def within(scale: float, alpha_min: float) -> float:
    """Return the scale, not below the smallest one that is ever asked for, and at most 1."""
    return min(1.0, max(alpha_min, scale))
