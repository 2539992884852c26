"""Documents for a closed loop, whose clients decide when they ask: a warm-up and one phase."""

from collections.abc import Sequence
from typing import ClassVar

from bellman.load.schedule import CONGESTED, Phase, Schedule, ScheduledRequest, draw_documents
from bellman.records import WARMUP
from bellman.schema import Count, NotNegative, Positive, schema


@schema
class ClosedTest:
    """What a closed loop takes from a schedule: documents, phases and the end, but no times."""

    capacity_rps: ClassVar[None] = None
    needs_capacity: ClassVar[bool] = False

    warmup_s: NotNegative
    """Seconds that are never counted."""
    duration_s: Positive
    """Seconds that count."""
    documents: Count
    """Requests before the documents start again from the first."""

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
