"""Length-forced mode: a model without real weights writes as long as a recorded model did."""

from dataclasses import dataclass

from msgspec.structs import replace

from bellman.energy.base import EnergyMeter, LocalServer
from bellman.engines.base import (
    Completion,
    EngineSession,
    HeadersCallback,
    Request,
    ServerState,
    SessionReport,
)
from bellman.responses.base import ResponseBank


@dataclass(frozen=True, slots=True)
class LengthForcedSession:
    """An `EngineSession` whose answers have the bank's numbers of tokens, and no text."""

    session: EngineSession
    bank: ResponseBank

    async def generate(self, request: Request, on_headers: HeadersCallback) -> Completion:
        """Send the request with the length that the bank has for it."""
        return await self.session.generate(with_bank_length(request, self.bank), on_headers)

    async def state(self) -> ServerState:
        """Return the server's own state."""
        return await self.session.state()

    def energy_meter(self) -> EnergyMeter | None:
        """Return the session's own meter."""
        return self.session.energy_meter()

    def local_server(self) -> LocalServer | None:
        """Return the session's own server."""
        return self.session.local_server()

    def report(self) -> SessionReport:
        """Return the session's own report."""
        return self.session.report()


def with_bank_length(request: Request, bank: ResponseBank) -> Request:
    """Return the request with the bank's number of tokens, at most the request's own limit.

    A length that the schedule already forces (a trace's) stays.
    """
    if request.forced_output_tokens is not None:
        return request
    recorded = bank.lookup(request.document_id, request.asked_words)
    return replace(request, forced_output_tokens=min(recorded.output_tokens, request.max_tokens))
