"""The store within one process: for tests and for simulations in virtual time."""

import asyncio
from dataclasses import dataclass, field

from bellman.store.base import Published, View


@dataclass
class _Shared:
    """The state of one endpoint; times by the running loop's clock."""

    holder: str | None = None
    token: int = 0
    lease_end_s: float = 0.0
    counts: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Requests in flight and until when they count, by gateway."""
    published: tuple[float | None, str, float] | None = None
    """The level, the law's state, and when."""

    def withdraw(self) -> None:
        if self.published is not None:
            self.published = (None, *self.published[1:])


@dataclass(frozen=True)
class MemorySeat:
    """A gateway's place; see `bellman.store.base.Seat`."""

    shared: _Shared
    gateway_id: str
    lease_s: float

    async def exchange(self, in_flight: int, wants_lease: bool) -> View:
        """Report, take or renew the lease, look around."""
        shared, now_s = self.shared, _now_s()
        shared.counts[self.gateway_id] = (in_flight, now_s + self.lease_s)
        shared.counts = {name: count for name, count in shared.counts.items() if count[1] > now_s}
        if shared.lease_end_s <= now_s:
            shared.holder = None
        if not wants_lease and shared.holder == self.gateway_id:
            shared.holder = None
            shared.withdraw()
        elif wants_lease and shared.holder is None:
            shared.holder = self.gateway_id
            shared.token += 1
        held = shared.holder == self.gateway_id
        if held:
            shared.lease_end_s = now_s + self.lease_s
        published = None
        if shared.published is not None:
            level, state, time_s = shared.published
            published = Published(level, state, now_s - time_s)
        others = [count[0] for name, count in shared.counts.items() if name != self.gateway_id]
        token = shared.token if held else None
        return View(token, sum(others), len(shared.counts), published)

    async def publish(self, token: int, level: float, state: str) -> bool:
        """Publish a level under a lease that still holds."""
        shared, now_s = self.shared, _now_s()
        if (shared.holder, shared.token) != (self.gateway_id, token) or shared.lease_end_s <= now_s:
            return False
        shared.published = (level, state, now_s)
        return True

    async def leave(self) -> None:
        """Take everything back."""
        self.shared.counts.pop(self.gateway_id, None)
        if self.shared.holder == self.gateway_id:
            self.shared.holder = None


class MemoryStore:
    """Endpoints by name, for the gateways of this process."""

    def __init__(self) -> None:
        self._endpoints: dict[str, _Shared] = {}

    def seat(self, endpoint_id: str, gateway_id: str, lease_s: float) -> MemorySeat:
        """Return a gateway's place."""
        shared = self._endpoints.setdefault(endpoint_id, _Shared())
        return MemorySeat(shared, gateway_id, lease_s)

    async def close(self) -> None:
        """Do nothing."""


def _now_s() -> float:
    return asyncio.get_running_loop().time()
