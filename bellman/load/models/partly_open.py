"""The partly open loop: users come on their own account, and some come back after an answer."""

from typing import Annotated

import numpy as np
from pydantic import Field

from bellman.load.driver import Load, Send, run_load
from bellman.load.models.base import request_at
from bellman.load.pacing import PacingStatistics
from bellman.load.schedule import Schedule, ScheduledRequest
from bellman.schema import NotNegative, schema


@schema
class PartlyOpenLoop:
    """Each request of the schedule is a user's first; after each answer the user stays or leaves.

    Schroeder, Wierman, Harchol-Balter: "Open versus closed: a cautionary tale" (NSDI 2006). Users
    come at the schedule's rate, so that requests come at that rate / (1 - return_probability), as
    long as answers come at all.
    """

    return_probability: Annotated[float, Field(ge=0, lt=1)]
    """Chance of another request after each answer, in [0, 1)."""
    think_s: NotNegative
    """Mean seconds between an answer and the user's next request (exponential)."""
    sends_schedule: bool = True

    async def drive(
        self, schedule: Schedule, send: Send, start_s: float, deadline_s: float
    ) -> PacingStatistics:
        """Run all users; none comes back after the schedule's end.

        What a user decides is drawn from the schedule's digest and the user's number, so that it
        is the same in all arms.
        """
        users = len(schedule.requests)
        seed = int(schedule.digest[:16], 16)

        async def stay(load: Load, first: ScheduledRequest) -> None:
            generator = np.random.default_rng([seed, first.request_id])
            request, visit = first, 0
            while True:
                await load.send(request)
                if generator.uniform() >= self.return_probability:
                    return
                due_s = load.now_s + generator.exponential(self.think_s)
                if due_s >= schedule.end_s:
                    return
                await load.wait_until(due_s)
                visit += 1
                number = first.request_id + visit * users
                request = request_at(schedule, first.request_id + visit, number, due_s)

        async def dispatch(load: Load) -> None:
            for first in schedule.requests:
                await load.wait_until(first.intended_s)
                load.spawn(stay(load, first))

        return await run_load(dispatch, send, start_s, deadline_s)
