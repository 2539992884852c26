"""One episode on several engines, or on one whose requests may be sent again."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bellman.attempts.log import AttemptLog
from bellman.energy.base import EnergyMeter, LocalServer
from bellman.energy.none import UnmeasuredEnergy
from bellman.energy.summed import SummedMeter
from bellman.engines.base import (
    Completion,
    EngineSession,
    HeadersCallback,
    Request,
    RequestFailed,
    ServerState,
    SessionReport,
)
from bellman.engines.routed.base import Route
from bellman.sensing.observation import Observation
from bellman.signal import parse_level

NOT_TOLD_APART = "several servers: which joules are whose is not measured"
SUMMED = (
    "waiting",
    "running",
    "outstanding_tokens",
    "prompt_tokens_total",
    "generated_tokens_total",
    "preemptions_total",
    "completed_total",
)
"""Quantities of which several engines have the sum; delays and shares have none."""


@dataclass(frozen=True)
class Replica:
    """One of the engines' sessions."""

    name: str | None
    """None where there is one engine only."""
    session: EngineSession


class RoutedSession:
    """Implements `EngineSession` by those of its replicas, and tells each attempt to the log."""

    def __init__(self, replicas: Sequence[Replica], route: Route) -> None:
        self.replicas = replicas
        self.log: AttemptLog | None = None
        """Where attempts are told; set before the first request."""
        self._route = route
        self._levels: list[float | None] = [None for _ in replicas]
        self._requests = 0

    async def generate(self, request: Request, on_headers: HeadersCallback) -> Completion:
        """Send a request to one replica after the other, until one answers; see `EngineSession`."""
        assert self.log is not None
        order = self._route.order(self._requests, self._levels)
        self._requests += 1
        for place in order:
            replica = self.replicas[place]

            def take_level(values: Sequence[str], place: int = place) -> None:
                level = parse_level(values)
                if level is not None:
                    self._levels[place] = level
                if self._route.heeds(place):
                    on_headers(values)

            attempt = self.log.begin(request.request_id, replica.name)
            try:
                completion = await replica.session.generate(request, take_level)
            except RequestFailed as failure:
                self.log.end(attempt, failure)
                if place == order[-1] or not may_pass_elsewhere(failure):
                    raise
            else:
                self.log.end(attempt, None)
                return completion
        raise AssertionError("a route without a replica")

    async def states(self) -> dict[str, ServerState]:
        """Return the state of every replica, in their order."""
        states = await asyncio.gather(*(one.session.state() for one in self.replicas))
        self._levels = [state.level for state in states]
        return {str(one.name): state for one, state in zip(self.replicas, states, strict=True)}

    async def state(self) -> ServerState:
        """Return the load of all replicas, and the mean of the levels that are heeded."""
        return self.combined((await self.states()).values())

    def combined(self, of_replicas: Collection[ServerState]) -> ServerState:
        """Return the replicas' states, in their order, as one."""
        states = list(of_replicas)
        if len(states) == 1:
            return states[0]
        heeded = [state for place, state in enumerate(states) if self._route.heeds(place)]
        levels = [state.level for state in heeded if state.level is not None]
        ages_s = [state.level_age_s for state in heeded if state.level_age_s is not None]
        return ServerState(
            observation=total([state.observation for state in states]),
            level=sum(levels) / len(levels) if levels else None,
            level_age_s=max(ages_s, default=None),
        )

    def energy_meter(self) -> EnergyMeter | None:
        """Return the sum of the engines' own meters; real servers' joules cannot be told apart."""
        if len(self.replicas) == 1:
            return self.replicas[0].session.energy_meter()
        meters = {str(one.name): one.session.energy_meter() for one in self.replicas}
        known = {name: meter for name, meter in meters.items() if meter is not None}
        if len(known) < len(meters):
            return UnmeasuredEnergy(NOT_TOLD_APART)
        return SummedMeter(known)

    def local_server(self) -> LocalServer | None:
        """Return where the only engine runs; of several no meter could tell them apart."""
        return self.replicas[0].session.local_server() if len(self.replicas) == 1 else None

    def report(self) -> SessionReport:
        """Return what the replicas say, each under its name where they differ."""
        if len(self.replicas) == 1:
            return self.replicas[0].session.report()
        reports = [(one.name, one.session.report()) for one in self.replicas]
        retries = [report.retries for _, report in reports if report.retries is not None]
        return SessionReport(
            prefix_cache=said_of_all({name: report.prefix_cache for name, report in reports}),
            salt="; ".join(f"{name}: {one.salt}" for name, one in reports if one.salt) or None,
            retries=sum(retries) if retries else None,
            invalid_reasons=tuple(
                f"{name}: {reason}" for name, one in reports for reason in one.invalid_reasons
            ),
            warnings=tuple(f"{name}: {text}" for name, one in reports for text in one.warnings),
        )


def may_pass_elsewhere(failure: RequestFailed) -> bool:
    """Whether another replica may answer: not after a timeout, nor a request's own fault (4xx)."""
    if failure.status == "rejected":
        return True
    own_fault = failure.http_status is not None and failure.http_status < 500
    return failure.status == "error" and not own_fault


def total(observations: Sequence[Observation | None]) -> Observation | None:
    """Return the load of several engines together; None where one does not show its own."""
    known = [one for one in observations if one is not None]
    if len(known) < len(observations):
        return None

    def summed(name: str) -> int | None:
        values = [getattr(one, name) for one in known]
        return None if None in values else sum(values)

    usages = [one.kv_usage for one in known if one.kv_usage is not None]
    return Observation(
        time_s=known[0].time_s,
        kv_usage=sum(usages) / len(usages) if len(usages) == len(known) else None,
        **{name: summed(name) for name in SUMMED},  # type: ignore[arg-type]
    )


def said_of_all(ways: Mapping[str | None, str]) -> str:
    """Return what all engines say of themselves; each by its name where they differ."""
    if len(set(ways.values())) == 1:
        return next(iter(ways.values()))
    return "; ".join(f"{name}: {way}" for name, way in ways.items())
