"""A tiny server whose behaviour is known, and a virtual clock to run it on."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from bellman.load.schedule import CONGESTED, Phase, Schedule, ScheduledRequest
from bellman.virtual_time import VirtualTimeLoop


def run_virtual(coroutine: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)


def schedule_at(times, end_s=None) -> Schedule:
    end_s = end_s if end_s is not None else max(times, default=0.0) + 1.0
    requests = tuple(ScheduledRequest(i, t, f"d{i}", CONGESTED) for i, t in enumerate(times))
    return Schedule(requests, (Phase(CONGESTED, 0.0, end_s, len(times) / end_s),), end_s)


@dataclass
class Answer:
    """What the client saw of one request, in seconds since the start."""

    request_id: int
    intended_s: float
    sent_s: float
    ended_s: float | None = None

    @property
    def e2e_s(self) -> float:
        return self.ended_s - self.intended_s

    @property
    def service_latency_s(self) -> float:
        return self.ended_s - self.sent_s


class PlacesServer:
    """Serves `places` requests at a time, first come first served, each for `draw_service_s()`."""

    def __init__(self, places: int, service_s: float, draw_service_s=None) -> None:
        self.places = asyncio.Semaphore(places)
        self.draw_service_s = draw_service_s or (lambda: service_s)
        self.answers: list[Answer] = []
        self.start_s = asyncio.get_running_loop().time()

    async def send(self, request: ScheduledRequest) -> None:
        loop = asyncio.get_running_loop()
        answer = Answer(request.request_id, request.intended_s, loop.time() - self.start_s)
        self.answers.append(answer)
        async with self.places:
            await asyncio.sleep(self.draw_service_s())
        answer.ended_s = loop.time() - self.start_s
