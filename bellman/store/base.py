"""What the gateways before one server share: a lease, the level, and their requests in flight.

No two machines' clocks are ever compared: a time is an age by the store's own clock, or how long a
gateway has seen something unchanged by its own.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Published:
    """What the last holder of the lease left."""

    level: float | None
    """None where it was withdrawn."""
    state: str
    """The law's, as `bellman.controllers.state` writes it: the next holder goes on from it."""
    age_s: float | None
    """Seconds since a level was published, at most; None while a gateway cannot know."""


@dataclass(frozen=True, slots=True)
class View:
    """What one gateway learns from the store in an exchange."""

    token: int | None
    """The fencing token of the lease, where this gateway holds it."""
    elsewhere: int
    """Requests in flight through the other gateways that reported within the lease's time."""
    gateways: int
    """Gateways that reported within the lease's time, this one among them."""
    published: Published | None


class Seat(Protocol):
    """One gateway's place at the shared state of one endpoint. Any call may raise anything."""

    async def exchange(self, in_flight: int, wants_lease: bool) -> View:
        """Report this gateway's requests in flight, take or renew the lease, and look around.

        Without `wants_lease` a lease that this gateway holds is given back and its level withdrawn.
        """

    async def publish(self, token: int, level: float, state: str) -> bool:
        """Publish a level under a lease; False where the lease has passed to another holder."""

    async def leave(self) -> None:
        """Take back this gateway's count and its lease; its level is left to grow old."""


class SignalStore(Protocol):
    """A store of signals, by endpoint."""

    def seat(self, endpoint_id: str, gateway_id: str, lease_s: float) -> Seat:
        """Return a gateway's place at an endpoint.

        `gateway_id` is this process's alone. A count and a lease that are not renewed within
        `lease_s` are gone.
        """

    async def close(self) -> None:
        """Close the connections."""
