"""A stand-in for a real server: the simulated engine in virtual time, which says it is measured.

It counts the tokens of prompts itself, as a server does, and tells its KV cache.
"""

from contextlib import asynccontextmanager
from typing import ClassVar

from msgspec.structs import replace

from bellman.engines.simulated.engine import RunningSimulatedEngine, SimulatedEngine
from bellman.schema import schema


@schema
class StandIn(SimulatedEngine):
    source: ClassVar = "measured"

    def with_bank(self, bank):
        return RunningStandIn(self, bank)


class RunningStandIn(RunningSimulatedEngine):
    @property
    def source(self):
        return "measured"

    @property
    def response_source(self):
        return "stand-in"

    def describe(self):
        facts = {"kv_blocks": self.config.kv_blocks, "kv_block_size": self.config.block_size}
        return super().describe() | facts

    @asynccontextmanager
    async def session(self, control):
        async with super().session(control) as session:
            yield CountingSession(session)


class CountingSession:
    def __init__(self, session):
        self.session = session

    async def generate(self, request, on_headers):
        tokens = 10 + len(request.prompt) // 5
        return await self.session.generate(replace(request, prompt_tokens=tokens), on_headers)

    def __getattr__(self, name):
        return getattr(self.session, name)
