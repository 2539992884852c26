"""The open loop: users come whether or not the server keeps up."""

from bellman.load.driver import Send, drive
from bellman.load.pacing import PacingStatistics
from bellman.load.schedule import Schedule
from bellman.schema import schema


@schema
class OpenLoop:
    """Every request leaves at its intended time."""

    sends_schedule: bool = True

    async def drive(
        self, schedule: Schedule, send: Send, start_s: float, deadline_s: float
    ) -> PacingStatistics:
        """Send the schedule."""
        return await drive(schedule, send, start_s, deadline_s)
