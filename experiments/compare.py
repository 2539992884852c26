"""Paired arms under the same congestion: the paper's experiment.

Capacity of the uncontrolled engine -> one schedule a repeat -> every arm serves it -> records.
"""

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from bellman.app.obedience import asked_words
from bellman.app.prompts import PromptBook
from bellman.app.summarization import SummarizationApp
from bellman.app.texts import TextStore
from bellman.corpus.base import Corpus
from bellman.energy.base import EnergyMeter
from bellman.engines.base import Engine, EngineSession
from bellman.engines.runtime import RunCoroutine, running
from bellman.episode import Arm, EpisodePlan, EpisodeResult, run_episode
from bellman.errors import RunError
from bellman.load.arrivals.lengths import lengths_of
from bellman.load.saturation import CapacityMeasurement, measure_capacity
from bellman.load.schedule import Schedule, ScheduledRequest, draw_documents
from bellman.quality.score import score_folder
from bellman.records import write_json, write_parquet
from bellman.run_folder import RunFolder
from bellman.settings import Settings
from bellman.timeline import TimelineRow
from experiments.progress import RunProgress
from experiments.recorder import Recorder

CAPACITY_STREAM = 2**31
"""Stands where a repeat's number does, for the capacity measurement's own documents."""
CAPACITY_REQUESTS = 100_000
"""More than any engine completes while it is measured."""

MakeApp = Callable[[EngineSession, Arm], SummarizationApp]


@dataclass(frozen=True)
class Parts:
    """What the steps of the experiment share."""

    settings: Settings
    engine: Engine
    document_ids: list[str]
    make_app: MakeApp
    run_coroutine: RunCoroutine


def run(
    settings: Settings, corpus: Corpus, engine: Engine, folder: RunFolder, console: Console
) -> None:
    """Run every repeat with every arm, and write all records into the folder."""
    write_json(
        {"baseline": settings.baseline.name, "treatments": [settings.treatment.name]},
        folder.path / "arms.json",
    )
    with Recorder(folder.path) as recorder, running(engine) as run_coroutine:
        document_ids = [document.document_id for document in corpus.documents]
        make_app = app_maker(settings, corpus, engine, recorder.texts)
        parts = Parts(settings, engine, document_ids, make_app, run_coroutine)
        capacity_rps = find_capacity(parts, folder.path, console)
        schedules = [
            settings.arrivals.schedule(capacity_rps, document_ids, settings.run.seed, repeat)
            for repeat in range(settings.run.repeats)
        ]
        tables = [schedule.to_table(repeat) for repeat, schedule in enumerate(schedules)]
        write_parquet(pa.concat_tables(tables), folder.path / "schedule.parquet")
        with RunProgress(console, engine.source) as progress:
            for plan in plans(settings, schedules):
                run_one(parts, plan, recorder, progress)
    score_folder(folder.path, corpus, settings.quality)


def plans(settings: Settings, schedules: list[Schedule]) -> list[EpisodePlan]:
    """Return the episodes in order; the arms alternate, so that neither is always first."""
    poll = settings.signal.delivery == "poll"
    return [
        EpisodePlan(
            repeat=repeat,
            arm=arm,
            schedule=schedule,
            load_model=settings.load_model,
            poll_period_s=settings.signal.poll_period_s if poll else None,
            timeline_period_s=settings.run.timeline_period_s,
            drain_s=settings.run.drain_s,
        )
        for repeat, schedule in enumerate(schedules)
        for arm in settings.arms[:: 1 if repeat % 2 == 0 else -1]
    ]


def run_one(parts: Parts, plan: EpisodePlan, recorder: Recorder, progress: RunProgress) -> None:
    """Run one episode and record it."""
    settings, engine = parts.settings, parts.engine
    progress.begin(f"{plan.repeat + 1}/{settings.run.repeats} {plan.arm.name}", plan.schedule.end_s)

    def on_row(row: TimelineRow) -> None:
        recorder.add_row(row)
        progress.update(row)

    # A warning on stderr is gone with the terminal; in the records it stands beside the results.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result: EpisodeResult = parts.run_coroutine(
            run_episode(
                engine,
                plan,
                make_app=parts.make_app,
                make_meter=lambda session: meter(settings, session),
                writer=recorder.requests,
                on_row=on_row,
            )
        )
    progress.finish(result.end_s)
    recorder.add_episode(
        plan,
        result,
        settings.pacing.invalid_reasons(result.pacing),
        seed=settings.run.seed,
        source=engine.source,
        response_source=engine.response_source,
        warnings=[str(warning.message) for warning in caught],
    )


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


def meter(settings: Settings, session: EngineSession) -> EnergyMeter:
    """Return the engine's own meter where it models energy, else the configured one."""
    own = session.energy_meter()
    return settings.energy.create() if own is None else own


def find_capacity(parts: Parts, folder: Path, console: Console) -> float | None:
    """Return the uncontrolled engine's capacity in requests/s: given, or measured now.

    None where neither: the arrivals have rates of their own.
    """
    settings, engine = parts.settings, parts.engine
    if not settings.arrivals.needs_capacity:
        given_rps: float | None = settings.arrivals.capacity_rps
        method = "not needed" if given_rps is None else "given: arrivals.capacity_rps"
        write_json(
            {"capacity_rps": given_rps, "method": method, "source": None}, folder / "capacity.json"
        )
        return given_rps
    how = settings.capacity
    console.print(
        f"measuring the capacity without control: {how.concurrency} requests outstanding, "
        f"{how.warmup_s:g} + {how.duration_s:g} s ({engine.source})"
    )

    async def saturate() -> CapacityMeasurement:
        async with engine.session(settings.uncontrolled.control) as session:
            app = parts.make_app(session, settings.uncontrolled)
            documents = draw_documents(
                parts.document_ids, CAPACITY_REQUESTS, settings.run.seed, CAPACITY_STREAM
            )
            lengths = lengths_of(settings.arrivals, settings.run.seed, CAPACITY_STREAM)

            async def send_one(index: int) -> None:
                prompt_tokens, output_tokens = lengths[index % len(lengths)]
                scheduled = ScheduledRequest(
                    index, 0.0, documents[index], "capacity", prompt_tokens, output_tokens
                )
                record = app.intend(scheduled, 0, settings.uncontrolled.name, engine.source)
                await app.summarize(scheduled, record)
                if record.status != "ok":
                    raise RunError(f"a request of the capacity measurement failed: {record.reason}")

            return await measure_capacity(send_one, how.concurrency, how.warmup_s, how.duration_s)

    measured: CapacityMeasurement = parts.run_coroutine(saturate())
    write_json(
        {
            **asdict(measured),
            "method": "completions of the saturated engine, closed loop, without control",
            "source": engine.source,
        },
        folder / "capacity.json",
    )
    console.print(f"capacity: {measured.capacity_rps:.2f} requests/s ({engine.source})")
    return measured.capacity_rps
