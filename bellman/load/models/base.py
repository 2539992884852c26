"""The interface of the config group `load_model`."""

from bisect import bisect_right
from dataclasses import replace
from typing import Protocol

from bellman.load.driver import Send
from bellman.load.pacing import PacingStatistics
from bellman.load.schedule import Schedule, ScheduledRequest


class LoadModel(Protocol):
    """A configured load model."""

    @property
    def sends_schedule(self) -> bool:
        """Whether each request of the schedule is intended; else only those sent are."""

    async def drive(
        self, schedule: Schedule, send: Send, start_s: float, deadline_s: float
    ) -> PacingStatistics:
        """Run the load; see `bellman.load.driver.run_load` for how it ends."""


def request_at(schedule: Schedule, index: int, request_id: int, time_s: float) -> ScheduledRequest:
    """Return a request that a user decides to send at `time_s`, beyond the schedule's own.

    All else of it is that of the schedule's `index`-th request, taken in circles: the document, and
    a trace's lengths, hash ids (so that a prefix cache knows it the second time) and priority.
    """
    phase = bisect_right([phase.start_s for phase in schedule.phases], time_s) - 1
    return replace(
        schedule.requests[index % len(schedule.requests)],
        request_id=request_id,
        intended_s=time_s,
        phase=schedule.phases[max(0, phase)].name,
    )
