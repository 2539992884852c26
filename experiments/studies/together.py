"""Several searches side by side, so that an executor gets a cell of each at once."""

from collections.abc import Sequence
from typing import TypeVar

from bellman.errors import RunError
from experiments.cells.base import Cell
from experiments.perform import Outcome
from experiments.studies.base import Search

Found = TypeVar("Found")


def together(searches: Sequence[Search[Found]]) -> Search[list[Found]]:
    """Return what each search found, in their order.

    Yields the next batches of all that have not ended as one batch, and sends each its own part. A
    search that raises `RunError` ends; the others go on to their ends before it is raised.
    """
    errors: list[RunError] = []
    found: dict[int, Found] = {}
    batches: dict[int, Sequence[Cell]] = {}

    def advance(number: int, outcomes: Sequence[Outcome] | None) -> None:
        search = searches[number]
        try:
            batches[number] = next(search) if outcomes is None else search.send(outcomes)
        except StopIteration as end:
            batches.pop(number, None)
            found[number] = end.value
        except RunError as error:
            batches.pop(number, None)
            errors.append(error)

    for number in range(len(searches)):
        advance(number, None)
    while batches:
        asked = dict(batches)
        outcomes = yield [cell for batch in asked.values() for cell in batch]
        at = 0
        for number, batch in asked.items():
            advance(number, outcomes[at : at + len(batch)])
            at += len(batch)
    if errors:
        raise errors[0]
    return [found[number] for number in range(len(searches))]
