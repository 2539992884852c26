"""The interface of the config group `client`."""

from typing import Protocol

from bellman.engines.base import RequestFailed


class Patience(Protocol):
    """What a client does about one request."""

    def wait_s(self, failure: RequestFailed) -> float | None:
        """Return in how many seconds to send it again after this failure; None gives it up."""


class Client(Protocol):
    """The parameters of a client."""

    @property
    def attempts(self) -> int:
        """How often a request is sent at most."""

    def start(self, repeat: int, request_id: int) -> Patience:
        """Return the state of one request."""
