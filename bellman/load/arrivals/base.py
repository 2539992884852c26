"""The interface of the config group `arrivals`, and what its synthetic kinds share."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bellman.errors import RunError, require
from bellman.load.processes import BURSTY, PROCESSES, Process
from bellman.load.rate_profile import Segment, expected_requests, to_clock
from bellman.load.schedule import (
    CONGESTED,
    Phase,
    Schedule,
    ScheduledRequest,
    draw_documents,
    time_generator,
)


class Arrivals(Protocol):
    """A configured offered load."""

    @property
    def capacity_rps(self) -> float | None:
        """Capacity that the rates are relative to, where the user gives it; None = measure."""

    @property
    def needs_capacity(self) -> bool:
        """Whether the rates are relative to the capacity of the uncontrolled engine."""

    def schedule(
        self, capacity_rps: float, document_ids: Sequence[str], seed: int, repeat: int
    ) -> Schedule:
        """Draw the schedule of one repeat; raises `RunError` when it has no congested request."""


def check_burstiness(process: Process, burstiness: float) -> None:
    """Check that the arrival process has a burstiness where one is given."""
    shaped = burstiness == 1 or process in BURSTY
    only = f"must be 1 for process={process}, only {' and '.join(BURSTY)} have one"
    require(shaped, "burstiness", burstiness, only)


def draw_schedule(
    process: Process,
    burstiness: float,
    *,
    segments: Sequence[Segment],
    phases: Sequence[Phase],
    document_ids: Sequence[str],
    seed: int,
    repeat: int,
) -> Schedule:
    """Draw arrivals of a process along a rate profile, each with its document and its phase."""
    expected = expected_requests(segments)
    unit = PROCESSES[process](expected, burstiness, time_generator(seed, repeat))
    times = to_clock(unit, segments)
    documents = draw_documents(document_ids, len(times), seed, repeat)
    starts = [phase.start_s for phase in phases]
    at_phase = np.maximum(0, np.searchsorted(starts, times, side="right") - 1)
    requests = tuple(
        ScheduledRequest(index, float(time), document, phases[phase].name)
        for index, (time, document, phase) in enumerate(
            zip(times, documents, at_phase, strict=True)
        )
    )
    return checked(Schedule(requests, tuple(phases), phases[-1].end_s))


def checked(schedule: Schedule) -> Schedule:
    """Return the schedule; raises `RunError` when nothing in it can answer the question."""
    if not any(request.phase == CONGESTED for request in schedule.requests):
        raise RunError(
            f"the schedule has no request in its {CONGESTED} phase: "
            "raise the rate (arrivals.*) or make the phase longer"
        )
    return schedule
