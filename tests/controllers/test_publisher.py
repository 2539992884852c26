"""The loop that runs a law, in virtual time."""

import asyncio
import math

from bellman.controllers.base import Level
from bellman.controllers.bellman import QueueLaw
from bellman.controllers.codel import Codel
from bellman.controllers.publisher import SignalPublisher
from bellman.sensing.failure import SensorFailed
from bellman.sensing.observation import Observation
from bellman.virtual_time import VirtualTimeLoop


def test_the_law_runs_at_once_and_then_every_period():
    async def main():
        loop = asyncio.get_running_loop()
        seen = []

        def sense():
            seen.append(loop.time())
            return Observation(time_s=loop.time(), waiting=100, running=0)

        law = QueueLaw(q_low=0, q_high=10, max_step=0.25)
        publisher = SignalPublisher(law, sense, period_s=0.5)
        assert (publisher.header, publisher.reason) == (None, "the law has not run yet")
        task = asyncio.create_task(publisher.run())
        await asyncio.sleep(1.25)
        assert seen == [0.0, 0.5, 1.0]
        assert publisher.header == "0.7500"
        assert publisher.signal.time_s == 1.0
        task.cancel()
        await asyncio.sleep(0)
        assert publisher.header is None  # nobody keeps it up to date any more

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


class Scripted:
    """A law that gives the levels of a list, and raises those that are errors."""

    name = "scripted"

    def __init__(self, levels):
        self.levels = iter(levels)

    def start(self):
        return Level(0.0)

    def update(self, state, observation, dt_s):
        level = next(self.levels)
        if isinstance(level, Exception):
            raise level
        return Level(level)


def test_a_failure_withdraws_the_level_and_is_told_once(caplog):
    errors = [ValueError("no"), KeyError("key"), SensorFailed("blind")]
    odd = [math.nan, math.inf, -math.inf, "0.5", None]
    law = Scripted([0.5, *errors, *odd, 0.25, 9.0, -9.0, math.nan, 0.5])
    observation = Observation(time_s=0.0, waiting=0, running=0)
    publisher = SignalPublisher(law, lambda: observation, 1.0)
    headers = []
    for now_s in range(14):
        publisher.update(float(now_s), 1.0)
        headers.append(publisher.header)
        assert (publisher.reason is None) == (publisher.header is not None)
    assert headers == ["0.5000", *[None] * 8, "0.2500", "1.0000", "0.0000", None, "0.5000"]
    assert (publisher.outages, publisher.last_s) == (2, 13.0)
    said = [record.message.partition(":")[0] for record in caplog.records]
    withdrawn, back = "no congestion level is published", "the congestion level is published again"
    assert said == [withdrawn, back] * 2


def test_a_law_that_needs_more_than_the_engine_reports_is_one_line(caplog):
    observation = Observation(time_s=0.0, waiting=0, running=0)
    publisher = SignalPublisher(Codel(0.5, 10.0, 0.1), lambda: observation, 1.0)
    publisher.update(0.0, 1.0)
    publisher.update(1.0, 1.0)
    (record,) = caplog.records
    assert "the law Codel needs oldest_waiting_s, which this engine does not" in record.message
    assert record.exc_info is None
    assert (publisher.header, publisher.outages) == (None, 1)
