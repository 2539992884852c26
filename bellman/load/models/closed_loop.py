"""The closed loop: a fixed number of clients, each waiting for its answer before it asks again."""

import itertools

from bellman.load.driver import Load, Send, run_load
from bellman.load.models.base import request_at
from bellman.load.pacing import PacingStatistics
from bellman.load.schedule import Schedule
from bellman.schema import Count, NotNegative, schema

AT_ONCE_S = 0.01
"""What comes back sooner is no answer of a model: the client was refused, or failed."""
REFUSED_PAUSE_S = 1.0
"""So long such a client pauses at least: it would ask again without end, in virtual time without
any time passing (ours)."""


@schema
class ClosedLoop:
    """`clients` users in a circle: ask, wait for the answer, think, ask again.

    Latency is then fixed by the number of clients (Little's law: clients = throughput x (latency
    + think time)), and says nothing about users who come on their own account. The schedule gives
    documents, phases and the end; its arrival times are not used.
    """

    clients: Count
    think_s: NotNegative
    """Seconds between an answer and the client's next request."""
    sends_schedule: bool = False

    async def drive(
        self, schedule: Schedule, send: Send, start_s: float, deadline_s: float
    ) -> PacingStatistics:
        """Let all clients ask from time 0 on, for the last time before the schedule's end."""
        ids = itertools.count()

        async def ask_in_circles(load: Load) -> None:
            while load.now_s < schedule.end_s:
                number, asked_s = next(ids), load.now_s
                await load.send(request_at(schedule, number, number, asked_s))
                refused = load.now_s - asked_s < AT_ONCE_S
                pause_s = max(self.think_s, REFUSED_PAUSE_S) if refused else self.think_s
                await load.wait_until(load.now_s + pause_s)

        async def dispatch(load: Load) -> None:
            for _ in range(self.clients):
                load.spawn(ask_in_circles(load))

        return await run_load(dispatch, send, start_s, deadline_s)
