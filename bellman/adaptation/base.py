"""The interface of an adaptation: the application's own answer to the signal."""

from typing import Protocol


class Adaptation(Protocol):
    """A pure function from the congestion level to the share of the default length to ask for."""

    def scale(self, level: float) -> float:
        """Return the wanted length / default length, in (0, 1], never rising with `level`."""
