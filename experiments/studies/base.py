"""The interface of the config group `study`: which cells answer a question."""

from collections.abc import Generator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from bellman.settings import Settings
from experiments.cells.base import Cell
from experiments.perform import Outcome

Found = TypeVar("Found")
Search: TypeAlias = Generator[Sequence[Cell], Sequence[Outcome], Found]
"""Yields cells that do not need each other, and receives an outcome for each, in their order."""
Cells = Search[None]


class Study(Protocol):
    """A configured study: a frozen dataclass."""

    def check(self, settings: Settings) -> None:
        """Refuse what this study cannot run, before anything runs; raises `ConfigError`."""

    def cells(self, settings: Settings) -> Cells:
        """Yield the cells of the study, a batch at a time.

        All that decides about later cells comes from the settings and the outcomes of earlier ones:
        the same study asked again goes the same way, through what is done already.
        """

    def facts(self, settings: Settings) -> dict[str, Any]:
        """Return what the analysis must know of the study besides its cells, for study.json."""
