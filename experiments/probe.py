"""Runs single episodes and hands back what they recorded, for procedures that search."""

from dataclasses import asdict
from typing import Any

import pandas as pd

from analysis.frames import derive
from bellman.engines.base import Engine
from bellman.engines.runtime import RunCoroutine
from bellman.episode import Arm, EpisodePlan, EpisodeResult, run_episode
from bellman.load.models.base import LoadModel
from bellman.load.schedule import Schedule
from bellman.records import JsonLinesWriter, RequestRecord
from bellman.settings import Settings
from bellman.timeline import TimelineRow
from experiments.compare import MakeApp, meter
from experiments.progress import RunProgress
from experiments.recorder import Recorder


class Collector:
    """Writes records as they come, and keeps them for the point that is measured."""

    def __init__(self, writer: JsonLinesWriter) -> None:
        self._writer = writer
        self.records: list[RequestRecord] = []

    def write(self, record: RequestRecord) -> None:
        """Write and keep a record."""
        self.records.append(record)
        self._writer.write(record)


class Probe:
    """Runs one episode a point; point numbers stand where a comparison's repeats do."""

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        *,
        make_app: MakeApp,
        run_coroutine: RunCoroutine,
        recorder: Recorder,
        progress: RunProgress,
    ) -> None:
        self.slo = settings.slo
        self._settings = settings
        self._engine = engine
        self._make_app = make_app
        self._run_coroutine = run_coroutine
        self._recorder = recorder
        self._progress = progress
        self._number = 0

    def run(
        self, arm: Arm, schedule: Schedule, model: LoadModel, label: str, **point: Any
    ) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
        """Run an episode; returns its requests, its timeline and why it is invalid, if it is."""
        settings, recorder = self._settings, self._recorder
        writer = Collector(recorder.requests)
        polls = settings.signal.delivery == "poll"
        rows: list[TimelineRow] = []
        plan = EpisodePlan(
            repeat=self._number,
            arm=arm,
            schedule=schedule,
            load_model=model,
            poll_period_s=settings.signal.poll_period_s if polls else None,
            timeline_period_s=settings.run.timeline_period_s,
            drain_s=settings.run.drain_s,
        )
        self._number += 1
        self._progress.begin(f"{label} {arm.name}", schedule.end_s)

        def on_row(row: TimelineRow) -> None:
            rows.append(row)
            recorder.add_row(row)
            self._progress.update(row)

        result: EpisodeResult = self._run_coroutine(
            run_episode(
                self._engine,
                plan,
                make_app=self._make_app,
                make_meter=lambda session: meter(settings, session),
                writer=writer,
                on_row=on_row,
            )
        )
        self._progress.finish(result.end_s)
        reasons = tuple(settings.pacing.invalid_reasons(result.pacing))
        recorder.add_episode(
            plan,
            result,
            list(reasons),
            seed=settings.run.seed,
            source=self._engine.source,
            response_source=self._engine.response_source,
            **point,
        )
        requests = derive(pd.DataFrame([asdict(record) for record in writer.records]))
        return requests, pd.DataFrame([asdict(row) for row in rows]), reasons
