"""The open loop behind a concurrency cap, as a client library with a connection limit does it."""

import asyncio

from bellman.load.driver import Send, drive
from bellman.load.pacing import PacingStatistics
from bellman.load.schedule import Schedule, ScheduledRequest
from bellman.schema import Count, schema


@schema
class CappedLoop:
    """At most `concurrency` requests are out; the others wait at the client, in order.

    The wait at the cap is the user's: it is part of e2e latency, which counts from the intended
    time, and not of service latency, which counts from the actual send.
    """

    concurrency: Count
    sends_schedule: bool = True

    async def drive(
        self, schedule: Schedule, send: Send, start_s: float, deadline_s: float
    ) -> PacingStatistics:
        """Send the schedule; the pacing's lag is the driver's own, without the wait at the cap."""
        places = asyncio.Semaphore(self.concurrency)

        async def send_in_turn(request: ScheduledRequest) -> None:
            async with places:
                await send(request)

        return await drive(schedule, send_in_turn, start_s, deadline_s)
