"""What the procedures share: the parts that an episode needs, and one episode, run and recorded."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bellman.app.obedience import asked_words
from bellman.app.prompts import PromptBook
from bellman.app.summarization import SummarizationApp
from bellman.app.texts import TextStore
from bellman.corpus.base import Corpus
from bellman.energy.base import EnergyMeter
from bellman.engines.base import Engine, EngineSession
from bellman.engines.runtime import RunCoroutine
from bellman.episode import Arm, EpisodePlan, EpisodeResult, RequestWriter, run_episode
from bellman.load.models.base import LoadModel
from bellman.load.schedule import Schedule
from bellman.settings import Settings
from bellman.timeline import TimelineRow
from experiments.progress import RunProgress
from experiments.recorder import Recorder

MakeApp = Callable[[EngineSession, Arm], SummarizationApp]


@dataclass(frozen=True)
class Parts:
    """What the episodes of a run share."""

    settings: Settings
    engine: Engine
    document_ids: list[str]
    make_app: MakeApp
    run_coroutine: RunCoroutine


def app_maker(settings: Settings, corpus: Corpus, engine: Engine, texts: TextStore) -> MakeApp:
    """Return the function that makes the application for a session and an arm."""
    rules = settings.application
    prompts = PromptBook(
        {document.document_id: document for document in corpus.documents},
        engine.count_tokens,
        rules.words_per_token,
    )

    def make_app(session: EngineSession, arm: Arm) -> SummarizationApp:
        return SummarizationApp(
            session,
            arm.adaptation,
            rules,
            prompts,
            texts,
            asked_words=lambda budget_words: asked_words(
                budget_words, calibrated=arm.calibrated, obedience=engine.obedience
            ),
            request_timeout_s=settings.run.request_timeout_s,
        )

    return make_app


def plan_episode(
    settings: Settings, repeat: int, arm: Arm, schedule: Schedule, load_model: LoadModel
) -> EpisodePlan:
    """Return an episode with the run's periods and deadlines."""
    polls = settings.signal.delivery == "poll"
    return EpisodePlan(
        repeat=repeat,
        arm=arm,
        schedule=schedule,
        load_model=load_model,
        poll_period_s=settings.signal.poll_period_s if polls else None,
        timeline_period_s=settings.run.timeline_period_s,
        drain_s=settings.run.drain_s,
    )


def run_recorded(
    parts: Parts,
    plan: EpisodePlan,
    recorder: Recorder,
    progress: RunProgress,
    *,
    label: str,
    writer: RequestWriter | None = None,
    on_row: Callable[[TimelineRow], None] = lambda _: None,
    **point: Any,
) -> list[str]:
    """Run one episode and record it; returns why it is invalid, empty where it is not.

    `writer` takes the requests instead of the recorder, `point` goes into episodes.json.
    """
    settings, engine = parts.settings, parts.engine
    progress.begin(label, plan.schedule.end_s)

    def take_row(row: TimelineRow) -> None:
        recorder.add_row(row)
        progress.update(row)
        on_row(row)

    # A warning on stderr is gone with the terminal; in the records it stands beside the results.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result: EpisodeResult = parts.run_coroutine(
            run_episode(
                engine,
                plan,
                make_app=parts.make_app,
                make_meter=lambda session: meter(settings, session),
                writer=writer or recorder.requests,
                on_row=take_row,
            )
        )
    progress.finish(result.end_s)
    reasons = [
        *settings.pacing.invalid_reasons(result.pacing),
        *result.session.invalid_reasons,
    ]
    recorder.add_episode(
        plan,
        result,
        reasons,
        seed=settings.run.seed,
        source=engine.source,
        response_source=engine.response_source,
        warnings=[*(str(warning.message) for warning in caught), *result.session.warnings],
        **point,
    )
    return reasons


async def meter(settings: Settings, session: EngineSession) -> EnergyMeter:
    """Return the engine's own meter where it models energy, else the configured one."""
    own = session.energy_meter()
    if own is not None:
        return own
    configured: EnergyMeter = await settings.energy.create(session.local_server())
    return configured
