"""A door, and a clock that the test moves."""

from dataclasses import dataclass, field
from typing import Any

from bellman.admission.base import Admission, Arrival, Outcome, Permit, Refusal
from bellman.sensing.observation import Observation


@dataclass
class Entrance:
    """Asks a door, and keeps the permits that are out, in order."""

    rule: Admission
    outstanding: int = 0
    """What the engine says, besides those who entered here."""
    now_s: float = 0.0
    permits: list[Permit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.door: Any = self.rule.open()

    def ask(self, prompt_tokens: int = 0, max_tokens: int = 0) -> Refusal | None:
        """Let a request arrive; None where it enters."""
        load = Observation(self.now_s, 0, self.outstanding + len(self.permits))
        entry = self.door.acquire(Arrival(prompt_tokens, max_tokens), load, self.now_s)
        if isinstance(entry, Refusal):
            return entry
        self.permits.append(entry)
        return None

    def enters(self, count: int = 1, **tokens: int) -> int:
        """Let requests arrive; return how many entered."""
        return sum(self.ask(**tokens) is None for _ in range(count))

    def end(self, count: int = 1, outcome: Outcome = "ok") -> None:
        """Let the requests that entered first end now."""
        for _ in range(count):
            self.permits.pop(0).done(outcome, self.now_s)
