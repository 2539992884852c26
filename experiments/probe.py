"""Runs single episodes and hands back what they recorded, for procedures that search."""

from dataclasses import asdict
from typing import Any

import pandas as pd

from analysis.frames import derive
from bellman.episode import Arm
from bellman.load.models.base import LoadModel
from bellman.load.schedule import Schedule
from bellman.records import JsonLinesWriter, RequestRecord
from bellman.timeline import TimelineRow
from experiments.progress import RunProgress
from experiments.recorded_episode import Parts, plan_episode, run_recorded
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

    def __init__(self, parts: Parts, recorder: Recorder, progress: RunProgress) -> None:
        self.slo = parts.settings.slo
        self._parts = parts
        self._recorder = recorder
        self._progress = progress
        self._number = 0

    def run(
        self, arm: Arm, schedule: Schedule, model: LoadModel, label: str, **point: Any
    ) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
        """Run an episode; returns its requests, its timeline and why it is invalid, if it is."""
        writer = Collector(self._recorder.requests)
        rows: list[TimelineRow] = []
        plan = plan_episode(self._parts.settings, self._number, arm, schedule, model)
        self._number += 1
        reasons = run_recorded(
            self._parts,
            plan,
            self._recorder,
            self._progress,
            label=f"{label} {arm.name}",
            writer=writer,
            on_row=rows.append,
            **point,
        )
        requests = derive(pd.DataFrame([asdict(record) for record in writer.records]))
        return requests, pd.DataFrame([asdict(row) for row in rows]), tuple(reasons)
