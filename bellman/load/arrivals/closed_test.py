"""Documents for a closed loop, whose clients decide when they ask: a warm-up and one phase."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellman.errors import require
from bellman.load.schedule import CONGESTED, Phase, Schedule, ScheduledRequest, draw_documents
from bellman.records import WARMUP


@dataclass(frozen=True)
class ClosedTest:
    """What a closed loop takes from a schedule: documents, phases and the end, but no times."""

    capacity_rps: ClassVar[None] = None
    needs_capacity: ClassVar[bool] = False

    warmup_s: float
    """Seconds that are never counted."""
    duration_s: float
    """Seconds that count."""
    documents: int
    """Requests before the documents start again from the first."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.warmup_s >= 0, "arrivals.warmup_s", self.warmup_s, "must be 0 or more")
        require(
            self.duration_s > 0, "arrivals.duration_s", self.duration_s, "must be greater than 0"
        )
        require(self.documents >= 1, "arrivals.documents", self.documents, "must be 1 or more")

    def schedule(
        self, capacity_rps: float | None, document_ids: Sequence[str], seed: int, repeat: int
    ) -> Schedule:
        """Draw the documents; all requests stand at time 0 and nothing is offered by itself."""
        end_s = self.warmup_s + self.duration_s
        phases = [Phase(CONGESTED, self.warmup_s, end_s, 0.0)]
        if self.warmup_s > 0:
            phases.insert(0, Phase(WARMUP, 0.0, self.warmup_s, 0.0))
        documents = draw_documents(document_ids, self.documents, seed, repeat)
        requests = (ScheduledRequest(i, 0.0, name, CONGESTED) for i, name in enumerate(documents))
        return Schedule(tuple(requests), tuple(phases), end_s)
