"""A client that takes the first answer, whatever it is."""

from bellman.engines.base import RequestFailed
from bellman.schema import schema


@schema
class GiveUp:
    """One attempt a request."""

    @property
    def attempts(self) -> int:
        """One."""
        return 1

    def start(self, repeat: int, request_id: int) -> "GiveUp":
        """Return itself: there is no state."""
        return self

    def wait_s(self, failure: RequestFailed) -> None:
        """Give up."""
        return None


GIVE_UP = GiveUp()
"""The client where none is configured."""
