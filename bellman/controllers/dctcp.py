"""DCTCP's reaction to the share of congestion marks (RFC 8257), on the length of the answers."""

from dataclasses import dataclass

from bellman.controllers.window import within
from bellman.schema import NotNegative, Positive, Share, schema
from bellman.sensing.observation import Observation


@dataclass(frozen=True, slots=True)
class Marks:
    """State: the scale, the estimated share of marks, and what this round trip had of them."""

    scale: float = 1.0
    share: float = 1.0
    """RFC 8257's alpha; it starts at the careful end, as in Linux."""
    marked: int = 0
    observed: int = 0
    elapsed_s: float = 0.0

    @property
    def level(self) -> float:
        """1 - scale."""
        return 1.0 - self.scale


@schema
class Dctcp:
    """An observation is marked while more than `mark_above` requests are outstanding.

    Each round trip, with the share F of its observations that were marked:
    share = (1 - gain) share + gain F; scale x (1 - share / 2) where any was marked,
    else scale + `increase`. Level = 1 - scale.
    """

    mark_above: NotNegative
    """Outstanding requests: DCTCP's K."""
    gain: Share
    """RFC 8257's g, 1/16."""
    increase: Share
    """Scale added a round trip without a mark (ours; TCP: one segment)."""
    alpha_min: Share
    """Smallest scale: below it the application would not go."""
    round_trip_s: Positive
    """Seconds until a shorter answer shows."""

    def start(self) -> Marks:
        """Return scale 1."""
        return Marks()

    def update(self, state: Marks, observation: Observation, dt_s: float) -> Marks:
        """Count the mark; decide once a round trip."""
        marked = state.marked + (observation.outstanding > self.mark_above)
        observed = state.observed + 1
        elapsed_s = state.elapsed_s + dt_s
        if elapsed_s < self.round_trip_s - dt_s / 2:
            return Marks(state.scale, state.share, marked, observed, elapsed_s)
        share = (1 - self.gain) * state.share + self.gain * marked / observed
        scale = state.scale * (1 - share / 2) if marked else state.scale + self.increase
        return Marks(within(scale, self.alpha_min), share)
