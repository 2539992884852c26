"""The loop that runs a law, in virtual time."""

import asyncio

from bellman.controllers.bellman import QueueLaw
from bellman.controllers.publisher import SignalPublisher
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
        assert publisher.header == "0.0000"
        task = asyncio.create_task(publisher.run())
        await asyncio.sleep(1.25)
        assert seen == [0.0, 0.5, 1.0]
        assert publisher.header == "0.7500"
        assert publisher.signal.time_s == 1.0
        task.cancel()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())
