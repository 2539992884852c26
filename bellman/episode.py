"""One episode: a schedule sent to an engine under one arm, with everything recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from bellman.adaptation.base import Adaptation
from bellman.app.direct import DirectRequests
from bellman.app.summarization import SummarizationApp
from bellman.attempts.base import Client
from bellman.attempts.give_up import GIVE_UP
from bellman.attempts.log import AttemptLog
from bellman.energy.base import EnergyMeter, EnergyReport
from bellman.engines.base import Control, DirectSession, Engine, EngineSession, SessionReport
from bellman.engines.routed.session import Replica, RoutedSession
from bellman.engines.routed.spillover import Spillover
from bellman.load.driver import drive_directly
from bellman.load.models.base import LoadModel
from bellman.load.models.open_loop import OpenLoop
from bellman.load.pacing import PacingStatistics
from bellman.load.schedule import Schedule, ScheduledRequest
from bellman.records import AttemptRecord, RequestRecord, TimelineRow
from bellman.sensing.observation import Observation
from bellman.signal import SignalReceiver
from bellman.source import Source
from bellman.timeline import EnergyWindow, Timeline, energy_windows, read_at


@dataclass(frozen=True)
class Arm:
    """One treatment: the server's half (control), the application's and the client's."""

    name: str
    control: Control
    adaptation: Adaptation
    client: Client = GIVE_UP
    """What whoever asks does about a refusal."""
    calibrated: bool = False
    """Ask for the number of words that yields the budget, by the model's length compliance."""


@dataclass(frozen=True)
class EpisodePlan:
    """Everything that makes one episode, besides the engine."""

    repeat: int
    arm: Arm
    schedule: Schedule
    load_model: LoadModel
    poll_period_s: float | None
    """Poll GET /bellman/congestion at this period; None: the header of every response."""
    timeline_period_s: float
    drain_s: float
    """How long after the schedule's end the outstanding requests may finish."""


class RequestWriter(Protocol):
    """Takes the record of each request as it ends."""

    def write(self, record: RequestRecord) -> None:
        """Write one record; raises OSError when it cannot."""


@dataclass(frozen=True)
class EpisodeResult:
    """What an episode leaves besides its request records and its timeline."""

    end_s: float
    pacing: PacingStatistics
    receiver: SignalReceiver
    session: SessionReport
    energy: EnergyReport
    windows: list[EnergyWindow]
    engine_prompt_tokens: int | None
    engine_generated_tokens: int | None


class Requests:
    """The intended requests of an episode; each is written once, as it ends."""

    def __init__(
        self,
        app: SummarizationApp,
        plan: EpisodePlan,
        source: Source,
        writer: RequestWriter,
        log: AttemptLog | None,
    ) -> None:
        self._app = app
        self._plan = plan
        self._source = source
        self._writer = writer
        self._log = log
        self._begun = bytearray(len(plan.schedule.requests))  # by the number of the request

    def intend(self, scheduled: ScheduledRequest) -> RequestRecord:
        """Return the record of a request that is about to be sent."""
        if scheduled.request_id < len(self._begun):  # else a user's, beyond the schedule's own
            self._begun[scheduled.request_id] = True
        return self._app.intend(scheduled, self._plan.repeat, self._plan.arm.name, self._source)

    async def send(self, scheduled: ScheduledRequest) -> None:
        """Send a request and write it, whatever becomes of it."""
        record = self.intend(scheduled)
        try:
            await self._app.summarize(scheduled, record)
        finally:
            self.write(record)

    def write(self, record: RequestRecord) -> None:
        """Write a request that has ended."""
        if self._log is not None:
            self._log.finish(record)
        self._writer.write(record)

    def write_unsent(self) -> None:
        """Write the requests of the schedule that were not begun, as `unfinished`."""
        for scheduled in (
            self._plan.schedule.requests if self._plan.load_model.sends_schedule else ()
        ):
            if not self._begun[scheduled.request_id]:
                self.write(self.intend(scheduled))


async def run_episode(
    engine: Engine,
    plan: EpisodePlan,
    *,
    make_app: Callable[[EngineSession, Arm], SummarizationApp],
    make_meter: Callable[[EngineSession], Awaitable[EnergyMeter]],
    writer: RequestWriter,
    on_row: Callable[[TimelineRow], None],
    on_attempt: Callable[[AttemptRecord], None],
) -> EpisodeResult:
    """Run one episode and return what it measured; raises `EngineDied` when the engine is gone.

    Every intended request is written to `writer` as it ends; those that are out when the drain
    time is over, or when the episode is cancelled, are written as `unfinished`. `on_attempt` hears
    of each time that a request was sent, where it can be more than one.
    """
    loop = asyncio.get_running_loop()
    schedule, arm = plan.schedule, plan.arm
    async with engine.session(arm.control) as opened:
        session = with_attempts(opened, arm.client)
        meter = await make_meter(session)
        await meter.start()
        before = (await session.state()).observation
        app = make_app(session, arm)
        start_s = loop.time()

        log: AttemptLog | None = None
        if isinstance(session, RoutedSession):
            log = session.log = AttemptLog(on_attempt, plan.repeat, arm.name, engine.source)
        requests = Requests(app, plan, engine.source, writer, log)
        timeline = Timeline(
            session,
            app,
            meter,
            schedule.phases,
            repeat=plan.repeat,
            arm=arm.name,
            source=engine.source,
            on_row=on_row,
        )
        edges_s = [phase.start_s for phase in schedule.phases] + [schedule.end_s]
        deadline_s = start_s + schedule.end_s + plan.drain_s
        try:
            # A failure in the background (the server died) ends the requests too.
            async with asyncio.TaskGroup() as group:
                at_edges = group.create_task(read_at(meter, start_s, edges_s))
                background = [group.create_task(timeline.run(plan.timeline_period_s))]
                if plan.poll_period_s is not None:
                    polling = poll_signal(session, app, plan.poll_period_s)
                    background.append(group.create_task(polling))
                if isinstance(session, DirectSession) and isinstance(plan.load_model, OpenLoop):
                    direct = DirectRequests(app, session, requests.intend, requests.write)
                    pacing = await drive_directly(schedule, direct, start_s, deadline_s)
                else:
                    pacing = await plan.load_model.drive(
                        schedule, requests.send, start_s, deadline_s
                    )
                readings = await at_edges
                await timeline.sample()
                readings.append(await meter.read())
                for task in background:
                    task.cancel()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            requests.write_unsent()
            report = await meter.stop()
        end_s = readings[-1].time_s - start_s
        after = (await session.state()).observation
    return EpisodeResult(
        end_s=end_s,
        pacing=pacing,
        receiver=app.receiver,
        session=session.report(),
        energy=report,
        windows=energy_windows(
            schedule.phases,
            readings,
            report,
            repeat=plan.repeat,
            arm=arm.name,
            start_s=start_s,
            incidents=meter.incidents(),
        ),
        engine_prompt_tokens=counted(before, after, "prompt_tokens_total"),
        engine_generated_tokens=counted(before, after, "generated_tokens_total"),
    )


def with_attempts(session: EngineSession, client: Client) -> EngineSession:
    """Return a session that tells each attempt, where a request may have more than one."""
    if client.attempts == 1 or isinstance(session, RoutedSession):
        return session
    return RoutedSession([Replica(None, session)], Spillover())


def counted(before: Observation | None, after: Observation | None, counter: str) -> int | None:
    """Return how far an engine's counter went during the episode.

    None where it has none, or where it went back: the server restarted, and what it did is lost.
    """
    start = getattr(before, counter, None)
    end = getattr(after, counter, None)
    return None if start is None or end is None or end < start else int(end - start)


async def poll_signal(session: EngineSession, app: SummarizationApp, period_s: float) -> None:
    """Hand the published level to the application every `period_s`, until cancelled."""
    while True:
        state = await session.state()
        app.receive(state.level_values)
        await asyncio.sleep(period_s)
