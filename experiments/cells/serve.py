"""Serves a schedule under the arm of an episode's settings, and records it."""

from collections.abc import Callable

from bellman.corpus.base import Corpus
from bellman.energy.base import EnergyMeter
from bellman.engines.base import Engine, EngineSession
from bellman.episode import EpisodePlan, EpisodeResult, run_episode
from bellman.load.schedule import Schedule
from bellman.records import TimelineRow
from bellman.settings import EpisodeSettings
from experiments.parts import Parts
from experiments.recorder import Recorder


def serve(
    settings: EpisodeSettings,
    schedule: Schedule,
    *,
    repeat: int,
    parts: Parts,
    corpus: Corpus,
    engine: Engine,
    recorder: Recorder,
    on_row: Callable[[TimelineRow], None] | None = None,
) -> EpisodeResult:
    """Run the episode on the engine's clock; starts the engine where needed.

    `on_row` takes the rows of the timeline in the recorder's place. Raises `EngineDied` when the
    engine is gone.
    """
    run_coroutine = parts.run_coroutine(engine)
    result: EpisodeResult = run_coroutine(
        run_episode(
            engine,
            _plan(settings, repeat, schedule),
            make_app=parts.app_maker(settings, corpus, engine, recorder.texts),
            make_meter=lambda session: _meter(settings, session),
            writer=recorder.requests,
            on_row=on_row or recorder.add_row,
            on_attempt=recorder.add_attempt,
        )
    )
    return result


def _plan(settings: EpisodeSettings, repeat: int, schedule: Schedule) -> EpisodePlan:
    """Return an episode with its periods and deadlines."""
    polls = settings.signal.delivery == "poll"
    return EpisodePlan(
        repeat=repeat,
        arm=settings.arm,
        schedule=schedule,
        load_model=settings.load_model,
        poll_period_s=settings.signal.poll_period_s if polls else None,
        timeline_period_s=settings.timeline_period_s,
        drain_s=settings.drain_s,
    )


async def _meter(settings: EpisodeSettings, session: EngineSession) -> EnergyMeter:
    """Return the engine's own meter where it models energy, else the configured one."""
    own = session.energy_meter()
    if own is not None:
        return own
    configured: EnergyMeter = await settings.energy.create(session.local_server())
    return configured
