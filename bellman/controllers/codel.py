"""CoDel's control law (RFC 8289): where it would drop a packet, the level rises a step."""

import math
from dataclasses import dataclass, replace

from bellman.schema import Positive, Share, schema
from bellman.sensing.growth import require_reported
from bellman.sensing.observation import Observation

FORGOTTEN_INTERVALS = 16
"""After so many intervals without a drop the next spell begins at one drop an interval again."""


@dataclass(frozen=True, slots=True)
class CodelState:
    """State, in RFC 8289's words; times in seconds since the law's start."""

    level: float = 0.0
    now_s: float = 0.0
    first_above_s: float | None = None
    """When the sojourn will have been above the target for an interval; None while below."""
    dropping: bool = False
    drop_next_s: float = 0.0
    count: int = 0
    """Drops since the dropping state was entered."""
    last_count: int = 0
    """Count at which it was entered last."""
    below_s: float = 0.0
    """For how long the sojourn has been below the target."""


@schema
class Codel:
    """The level rises by `step` when the sojourn stayed above `target` for a whole `interval`.

    While it stays above, further steps follow at interval / sqrt(count), as CoDel drops; below the
    target the level falls by a step an interval. The sojourn is the age of the request that has
    waited longest for a place in the batch: a batch with room for all hides every other slowness.
    """

    target_queue_delay_s: Positive
    """Seconds of standing queue that are allowed (RFC 8289: 5 % of the interval)."""
    interval_s: Positive
    """Seconds of a round trip of the loop: until a shorter answer shows."""
    step: Share
    """Level of one drop (ours)."""

    def start(self) -> CodelState:
        """Return level 0."""
        return CodelState()

    def update(self, state: CodelState, observation: Observation, dt_s: float) -> CodelState:
        """Compare the sojourn with the target, and drop where it is time to."""
        require_reported(observation, self, "oldest_waiting_s")
        state = replace(state, now_s=state.now_s + dt_s)
        if (observation.oldest_waiting_s or 0.0) < self.target_queue_delay_s:
            return self._below(state, dt_s)
        if state.first_above_s is None:
            return replace(state, first_above_s=state.now_s + self.interval_s, below_s=0.0)
        if state.dropping:
            return self._drop(state)
        if state.now_s < state.first_above_s:
            return state
        return self._enter(state)

    def _below(self, state: CodelState, dt_s: float) -> CodelState:
        """Leave the dropping state; the level falls a step an interval."""
        below_s, level = state.below_s + dt_s, state.level
        if below_s >= self.interval_s - dt_s / 2:
            below_s, level = 0.0, max(0.0, level - self.step)
        return replace(state, level=level, below_s=below_s, first_above_s=None, dropping=False)

    def _enter(self, state: CodelState) -> CodelState:
        """Drop once; after a short pause go on where the last spell stood."""
        drops = state.count - state.last_count
        recent = state.now_s - state.drop_next_s < FORGOTTEN_INTERVALS * self.interval_s
        count = drops if drops > 1 and recent else 1
        return replace(
            state,
            level=min(1.0, state.level + self.step),
            dropping=True,
            count=count,
            last_count=count,
            drop_next_s=state.now_s + self.interval_s / math.sqrt(count),
        )

    def _drop(self, state: CodelState) -> CodelState:
        """Drop as often as is due."""
        level, count, drop_next_s = state.level, state.count, state.drop_next_s
        while state.now_s >= drop_next_s and level < 1.0:
            level, count = min(1.0, level + self.step), count + 1
            drop_next_s += self.interval_s / math.sqrt(count)
        return replace(state, level=level, count=count, drop_next_s=drop_next_s)
