"""Paired arms under the same congestion: the paper's experiment.

Capacity of the uncontrolled engine -> one schedule a repeat -> every arm serves it -> records.
"""

from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from bellman.corpus.base import Corpus
from bellman.engines.base import Engine
from bellman.engines.runtime import running
from bellman.episode import EpisodePlan
from bellman.errors import RunError
from bellman.load.arrivals.lengths import lengths_of
from bellman.load.saturation import CapacityMeasurement, measure_capacity
from bellman.load.schedule import Schedule, ScheduledRequest, draw_documents
from bellman.records import write_json, write_parquet
from bellman.run_folder import RunFolder
from bellman.settings import Settings
from experiments.progress import RunProgress
from experiments.recorded_episode import Parts, app_maker, plan_episode, run_recorded
from experiments.recorder import Recorder

CAPACITY_STREAM = 2**31
"""Stands where a repeat's number does, for the capacity measurement's own documents."""
CAPACITY_REQUESTS = 100_000
"""Drawn documents; a longer measurement starts again from the first."""


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


def plans(settings: Settings, schedules: list[Schedule]) -> list[EpisodePlan]:
    """Return the episodes in order; the arms alternate, so that neither is always first."""
    return [
        plan_episode(settings, repeat, arm, schedule, settings.load_model)
        for repeat, schedule in enumerate(schedules)
        for arm in settings.arms[:: 1 if repeat % 2 == 0 else -1]
    ]


def run_one(parts: Parts, plan: EpisodePlan, recorder: Recorder, progress: RunProgress) -> None:
    """Run one episode of the comparison and record it."""
    label = f"{plan.repeat + 1}/{parts.settings.run.repeats} {plan.arm.name}"
    run_recorded(parts, plan, recorder, progress, label=label)


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
        f"{how.warmup_s:g} + {how.duration_s:g} s or until {how.completions} answers, at most "
        f"{how.deadline_s:g} s ({engine.source})"
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
                    index,
                    0.0,
                    documents[index % len(documents)],
                    "capacity",
                    prompt_tokens,
                    output_tokens,
                )
                record = app.intend(scheduled, 0, settings.uncontrolled.name, engine.source)
                await app.summarize(scheduled, record)
                if record.status != "ok":
                    raise RunError(f"a request of the capacity measurement failed: {record.reason}")

            return await measure_capacity(send_one, how)

    measured: CapacityMeasurement = parts.run_coroutine(saturate())
    write_json(
        {
            **asdict(measured),
            "method": "completions of the saturated engine, closed loop, without control",
            "source": engine.source,
        },
        folder / "capacity.json",
    )
    console.print(describe(measured, engine.source))
    return measured.capacity_rps


def describe(measured: CapacityMeasurement, source: str) -> str:
    """Say what was measured, and how exact it is."""
    exact = "too few answers for an interval"
    if measured.low_rps is not None and measured.high_rps is not None:
        exact = f"95 % interval {measured.low_rps:.4g} to {measured.high_rps:.4g}"
    return (
        f"capacity: {measured.capacity_rps:.4g} requests/s, {exact}; {measured.completed:,} "
        f"answers in {measured.duration_s:.0f} s ({source})"
    )
