"""A real engine beside the simulated one: the same schedules, and the errors of the simulation.

On the idle real engine, batches of requests are timed, before the episodes and again after them,
and every answer that the schedules may ask for is recorded. The simulated engine's step time is
fitted to the batches alone. Both engines serve the same congested episodes, which no fit has seen.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from rich.console import Console

from bellman import interruption
from bellman.app.prompt import TEMPLATE, summary_prompt
from bellman.app.words import count_words
from bellman.corpus.base import Corpus
from bellman.engines.base import Engine, EngineSession, Request, RequestFailed
from bellman.engines.batches import Batch, BatchTimes, run_batch
from bellman.engines.runtime import running
from bellman.engines.simulated.bank_recorded import (
    RECORDED_RESPONSES,
    RecordedResponses,
    write_recorded,
)
from bellman.engines.simulated.engine import RunningSimulatedEngine, SimulatedEngine
from bellman.engines.simulated.fit_batches import fit_batches
from bellman.errors import RunError
from bellman.load.schedule import Schedule
from bellman.records import write_json, write_parquet
from bellman.run_folder import RunFolder
from bellman.settings import Settings
from experiments.compare import find_capacity, plans, run_one
from experiments.progress import RunProgress
from experiments.recorded_episode import Parts, app_maker
from experiments.recorder import Recorder
from experiments.replay_study import ReplayStudy

MEASURED = "measured"
SIMULATED = "simulated"
"""The two folders of records in the run's folder."""


def run(
    settings: Settings, corpus: Corpus, engine: Engine, folder: RunFolder, console: Console
) -> None:
    """Measure, fit, and replay; raises `RunError` where the engine is a simulated one."""
    if engine.source != "measured":
        raise RunError("this experiment compares with a real engine: engine=vllm or vllm_cpu")
    study: ReplayStudy = settings.study
    measured_folder, simulated_folder = folder.path / MEASURED, folder.path / SIMULATED
    for path in (measured_folder, simulated_folder):
        path.mkdir()
    arms = {"baseline": settings.baseline.name, "treatments": [settings.treatment.name]}
    write_json(arms, folder.path / "arms.json")

    with Recorder(measured_folder) as recorder, running(engine) as run_coroutine:
        document_ids = [document.document_id for document in corpus.documents]
        make_app = app_maker(settings, corpus, engine, recorder.texts)
        parts = Parts(settings, engine, document_ids, make_app, run_coroutine)
        study.cache(engine)  # what it does not say must not come to light at the end
        console.print("timing batches on the idle engine (measured)")
        before = run_coroutine(time_batches(settings, engine, "before"))
        console.print("recording the answers of every document and length (measured)")
        answers = run_coroutine(record_answers(settings, corpus, engine))
        capacity_rps = find_capacity(parts, folder.path, console)
        schedules = [
            settings.arrivals.schedule(capacity_rps, document_ids, settings.run.seed, repeat)
            for repeat in range(settings.run.repeats)
        ]
        tables = [schedule.to_table(repeat) for repeat, schedule in enumerate(schedules)]
        write_parquet(pa.concat_tables(tables), folder.path / "schedule.parquet")
        serve(parts, schedules, recorder, console)
        console.print("timing the batches again (measured)")
        after = run_coroutine(time_batches(settings, engine, "after"))

    bank, prompt_tokens = make_bank(answers, corpus, engine, folder.path / "bank.parquet")
    rounds = [early + late for early, late in zip(before, after, strict=True)]
    measured = list(zip(study.batches, map(median_times, rounds), strict=True))
    with interruption.interruptible():
        fitted, simulated = fit(study.simulated(engine, measured), measured, bank, prompt_tokens)
    fitted["drift"] = drift(before, after)
    write_json(fitted, folder.path / "fit.json")
    with Recorder(simulated_folder) as recorder, running(simulated) as run_coroutine:
        make_app = app_maker(settings, corpus, simulated, recorder.texts)
        parts = Parts(settings, simulated, document_ids, make_app, run_coroutine)
        serve(parts, schedules, recorder, console)


def serve(parts: Parts, schedules: list[Schedule], recorder: Recorder, console: Console) -> None:
    """Run every episode of the comparison on an engine."""
    with RunProgress(console, parts.engine.source) as progress:
        for plan in plans(parts.settings, schedules):
            run_one(parts, plan, recorder, progress)


async def time_batches(settings: Settings, engine: Engine, when: str) -> list[list[BatchTimes]]:
    """Run every batch on the idle engine; return its rounds."""
    study: ReplayStudy = settings.study
    async with engine.session(settings.baseline.control) as session:
        try:
            return [
                [
                    await run_batch(session, batch, f"{batch}-{when}-{number}")
                    for number in range(study.rounds)
                ]
                for batch in study.batches
            ]
        except RequestFailed as failure:
            raise RunError(f"a batch could not be timed: {failure}") from None


def median_times(rounds: list[BatchTimes]) -> BatchTimes:
    """Return the medians of a batch's rounds."""
    return BatchTimes(
        prompt_tokens=round(median(times.prompt_tokens for times in rounds)),
        first_s=median(times.first_s for times in rounds),
        last_s=median(times.last_s for times in rounds),
    )


def drift(before: list[list[BatchTimes]], after: list[list[BatchTimes]]) -> list[float]:
    """Return by how much each batch took longer after the episodes than before them, as a share.

    The prompts differ, so it is the machine's drift and the noise of the rounds together.
    """
    return [
        median_times(late).last_s / median_times(early).last_s - 1
        for early, late in zip(before, after, strict=True)
    ]


async def record_answers(
    settings: Settings, corpus: Corpus, engine: Engine
) -> list[dict[str, Any]]:
    """Ask for every document at every budget, with as many requests at once as the batch holds."""
    waiting = iter(list(questions(settings, corpus)))
    rows: list[dict[str, Any]] = []

    async def work(session: EngineSession) -> None:
        for request in waiting:
            rows.append(await answer(session, request))

    async with engine.session(settings.baseline.control) as session:
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(settings.study.max_num_seqs):
                    workers.create_task(work(session))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
    return rows


def questions(settings: Settings, corpus: Corpus) -> Iterator[Request]:
    """Yield the requests that the application may make."""
    rules = settings.application
    for document in corpus.documents:
        for words in rules.ladder_words:
            prompt = summary_prompt(document.text, words)
            yield Request(0, document.document_id, prompt, words, rules.max_tokens(words))


async def answer(session: EngineSession, request: Request) -> dict[str, Any]:
    """Return the bank's row for a request, with its prompt."""
    try:
        completion = await session.generate(request, lambda _: None)
    except RequestFailed as failure:
        raise RunError(f"an answer could not be recorded: {failure}") from None
    text = completion.text or ""
    return {
        "document_id": request.document_id,
        "asked_words": request.asked_words,
        "text": text,
        "words": count_words(text),
        "output_tokens": completion.output_tokens,
        "prompt_tokens": completion.prompt_tokens,
        "finish_reason": completion.finish_reason,
        "prompt": request.prompt,
    }


def make_bank(
    answers: list[dict[str, Any]], corpus: Corpus, engine: Engine, file: Path
) -> tuple[RecordedResponses, dict[str, int]]:
    """Write the answers as a bank; return it, and the tokens of every prompt."""
    metadata = {
        "model": engine.response_source,
        "revision": "as in provenance.json",
        "prompt_template": TEMPLATE,
        "decoding": engine.describe().get("sampling"),
        "corpus": corpus.name,
        "text_digests": corpus.text_digests,
        "recorded_utc": "as in provenance.json",
    }
    table = pa.Table.from_pylist(answers, schema=RECORDED_RESPONSES)
    write_recorded(table, metadata, file)
    bank = RecordedResponses(file, table, metadata)
    return bank, {row["prompt"]: row["prompt_tokens"] for row in answers}


def fit(
    config: SimulatedEngine,
    measured: list[tuple[Batch, BatchTimes]],
    bank: RecordedResponses,
    prompt_tokens: dict[str, int],
) -> tuple[dict[str, Any], RunningSimulatedEngine]:
    """Return what fit.json says, and the simulated engine with the fitted step time."""
    step_time, errors = fit_batches(config, measured)
    fitted = replace(config, profile=replace(config.profile, time=step_time))
    batches = [
        {
            **asdict(batch),
            **asdict(times),
            "first_error": float(errors[2 * number]),
            "last_error": float(errors[2 * number + 1]),
        }
        for number, (batch, times) in enumerate(measured)
    ]
    report = {"step_time": asdict(step_time), "batches": batches}
    return report, fitted.with_bank(bank, prompt_tokens.get)
