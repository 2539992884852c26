"""One episode: a schedule sent to an engine under one arm, with everything recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from bellman.adaptation.base import Adaptation
from bellman.app.direct import DirectRequests
from bellman.app.summarization import SummarizationApp
from bellman.energy.base import EnergyMeter, EnergyReport
from bellman.engines.base import Control, DirectSession, Engine, EngineSession, SessionReport
from bellman.load.driver import drive_directly
from bellman.load.models.base import LoadModel
from bellman.load.models.open_loop import OpenLoop
from bellman.load.pacing import PacingStatistics
from bellman.load.schedule import Schedule, ScheduledRequest
from bellman.records import RequestRecord, TimelineRow
from bellman.sensing.observation import Observation
from bellman.signal import SignalReceiver
from bellman.timeline import EnergyWindow, Timeline, energy_windows, read_at


@dataclass(frozen=True)
class Arm:
    """One treatment: the server's half (control) and the application's half (adaptation)."""

    name: str
    control: Control
    adaptation: Adaptation
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


async def run_episode(
    engine: Engine,
    plan: EpisodePlan,
    *,
    make_app: Callable[[EngineSession, Arm], SummarizationApp],
    make_meter: Callable[[EngineSession], Awaitable[EnergyMeter]],
    writer: RequestWriter,
    on_row: Callable[[TimelineRow], None],
) -> EpisodeResult:
    """Run one episode and return what it measured; raises `EngineDied` when the engine is gone.

    Every intended request is written to `writer` as it ends; those that are out when the drain
    time is over, or when the episode is cancelled, are written as `unfinished`.
    """
    loop = asyncio.get_running_loop()
    schedule, arm = plan.schedule, plan.arm
    async with engine.session(arm.control) as session:
        meter = await make_meter(session)
        await meter.start()
        before = (await session.state()).observation
        app = make_app(session, arm)
        start_s = loop.time()

        recorded: set[int] = set()

        def intend(scheduled: ScheduledRequest) -> RequestRecord:
            recorded.add(scheduled.request_id)
            return app.intend(scheduled, plan.repeat, arm.name, engine.source)

        async def send(scheduled: ScheduledRequest) -> None:
            record = intend(scheduled)
            try:
                await app.summarize(scheduled, record)
            finally:
                writer.write(record)

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
                    direct = DirectRequests(app, session, intend, writer.write)
                    pacing = await drive_directly(schedule, direct, start_s, deadline_s)
                else:
                    pacing = await plan.load_model.drive(schedule, send, start_s, deadline_s)
                readings = await at_edges
                await timeline.sample()
                readings.append(await meter.read())
                for task in background:
                    task.cancel()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            for scheduled in schedule.requests if plan.load_model.sends_schedule else ():
                if scheduled.request_id not in recorded:
                    writer.write(app.intend(scheduled, plan.repeat, arm.name, engine.source))
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
