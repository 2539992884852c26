"""How much load is too much: closed loop, open loop around it, and the highest rate under an SLO.

(a) A closed loop with more and more clients finds where throughput stops growing: the capacity.
    Little's law is checked at every point; its latencies are not what users wait.
(b) Poisson arrivals at rates around the capacity give what users wait, goodput and the good
    fraction; bisection finds the highest rate that keeps a good fraction under the SLO.
(c) Offered against achieved rate and e2e against service latency of the same episodes say whether
    the load generator kept up.

All with every arm, so that the last line says how much more load the same SLO carries.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
from rich.console import Console

from analysis.capacity.points import ClosedPoint, OpenPoint, closed_point, open_point
from analysis.frames import derive
from bellman.corpus.base import Corpus
from bellman.engines.base import Engine
from bellman.engines.runtime import RunCoroutine, running
from bellman.episode import Arm, EpisodePlan, EpisodeResult, run_episode
from bellman.errors import RunError, require
from bellman.load.arrivals.steady import Steady
from bellman.load.bracket import highest_passing
from bellman.load.models.base import LoadModel
from bellman.load.models.closed_loop import ClosedLoop
from bellman.load.models.open_loop import OpenLoop
from bellman.load.schedule import CONGESTED, Phase, Schedule, ScheduledRequest, draw_documents
from bellman.records import WARMUP, JsonLinesWriter, RequestRecord, write_json
from bellman.run_folder import RunFolder
from bellman.settings import Settings
from bellman.timeline import TimelineRow
from experiments.compare import MakeApp, app_maker, meter
from experiments.progress import RunProgress
from experiments.recorder import Recorder

CLOSED_DOCUMENTS = 10_000
"""Requests of the closed loop before its documents start again from the first."""


@dataclass(frozen=True)
class CapacityStudy:
    """What the experiment is told (`study` in its YAML)."""

    clients_limit: int
    """The closed loop doubles its clients from 1 on, up to this many."""
    growth: float
    """The closed loop ends when doubling the clients raises throughput by less than this share."""
    closed_warmup_s: float
    closed_test_s: float
    closed_lifetimes: float
    """The test lasts at least this many latencies, the warm-up a quarter as many: a request that
    is cut by the window's edge must not matter."""
    loads: list[float]
    """Rates of the open loop / capacity of the closed loop without control."""
    open_warmup_s: float
    open_test_s: float
    good_fraction: float
    """Share of good requests that a rate has to keep."""
    resolution: float
    """Width at which the bisection ends, as a share of the capacity."""
    load_limit: float
    """Highest rate tried / capacity."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.clients_limit >= 2, "study.clients_limit", self.clients_limit, "must be >= 2")
        require(self.growth > 0, "study.growth", self.growth, "must be greater than 0")
        for key in ("closed_warmup_s", "open_warmup_s"):
            require(getattr(self, key) >= 0, f"study.{key}", getattr(self, key), "must be >= 0")
        for key in ("closed_test_s", "closed_lifetimes", "open_test_s", "resolution"):
            require(getattr(self, key) > 0, f"study.{key}", getattr(self, key), "must be > 0")
        valid = len(self.loads) > 0 and min(self.loads) > 0
        require(valid, "study.loads", self.loads, "must be a list of numbers greater than 0")
        top = max(self.loads, default=0.0)
        require(self.load_limit >= top, "study.load_limit", self.load_limit, f"must be >= {top}")
        require(
            0 < self.good_fraction <= 1,
            "study.good_fraction",
            self.good_fraction,
            "must be in (0, 1]",
        )


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


def run(
    settings: Settings, corpus: Corpus, engine: Engine, folder: RunFolder, console: Console
) -> None:
    """Run the three steps with both arms, and write all records into the folder."""
    study = settings.study
    if not isinstance(study, CapacityStudy):
        raise RunError("this procedure needs a study: run it by experiment=capacity")
    write_json(
        {"baseline": settings.baseline.name, "treatments": [settings.treatment.name]},
        folder.path / "arms.json",
    )
    document_ids = [document.document_id for document in corpus.documents]
    with (
        Recorder(folder.path) as recorder,
        running(engine) as run_coroutine,
        RunProgress(console, engine.source) as progress,
    ):
        probe = Probe(
            settings,
            engine,
            make_app=app_maker(settings, corpus, engine, recorder.texts),
            run_coroutine=run_coroutine,
            recorder=recorder,
            progress=progress,
        )
        seed = settings.run.seed
        closed = {
            arm.name: closed_loop(
                probe,
                study,
                arm,
                lambda latency_s: closed_schedule(study, latency_s, document_ids, seed),
            )
            for arm in settings.arms
        }
        saturated = closed[settings.baseline.name][-1]
        write_json(
            {
                "capacity_rps": saturated.throughput_rps,
                "completed": saturated.completed,
                "duration_s": saturated.test_length_s,
                "concurrency": saturated.clients,
                "method": "completions of the saturated engine, closed loop, baseline arm",
                "source": engine.source,
            },
            folder.path / "capacity.json",
        )
        for arm in settings.arms:
            open_loop(
                probe,
                study,
                arm,
                saturated.throughput_rps,
                lambda rate_rps: steady(study, rate_rps, document_ids, seed),
            )


def closed_schedule(
    study: CapacityStudy, latency_s: float, document_ids: list[str], seed: int
) -> Schedule:
    """Return what a closed loop takes from a schedule: documents, phases and the end."""
    warmup_s = max(study.closed_warmup_s, study.closed_lifetimes * latency_s / 4)
    end_s = warmup_s + max(study.closed_test_s, study.closed_lifetimes * latency_s)
    phases = [Phase(CONGESTED, warmup_s, end_s, 0.0)]
    if warmup_s > 0:
        phases.insert(0, Phase(WARMUP, 0.0, warmup_s, 0.0))
    documents = draw_documents(document_ids, CLOSED_DOCUMENTS, seed, 0)
    requests = (ScheduledRequest(i, 0.0, name, CONGESTED) for i, name in enumerate(documents))
    return Schedule(tuple(requests), tuple(phases), end_s)


def closed_loop(
    probe: Probe, study: CapacityStudy, arm: Arm, draw: Callable[[float], Schedule]
) -> list[ClosedPoint]:
    """(a) Double the clients until throughput grows no more; returns the points in order."""
    points: list[ClosedPoint] = []
    clients = 1
    while clients <= study.clients_limit:
        # The latency to expect, by Little's law if throughput stays what it was.
        latency_s = clients / points[-1].throughput_rps if points else 0.0
        schedule = draw(latency_s)
        counted = schedule.phases[-1]
        window = (counted.start_s, counted.end_s)
        requests, timeline, reasons = probe.run(
            arm,
            schedule,
            ClosedLoop(clients, 0.0),
            f"{clients} clients",
            step="closed",
            clients=clients,
        )
        points.append(
            closed_point(
                arm.name,
                clients,
                requests=requests,
                timeline=timeline,
                window=window,
                invalid_reasons=reasons,
            )
        )
        if points[-1].completed == 0:
            raise RunError(
                f"no request of {clients} clients ended in {study.closed_test_s:g} s: "
                "raise study.closed_test_s"
            )
        grown = len(points) < 2 or (
            points[-1].throughput_rps >= (1 + study.growth) * points[-2].throughput_rps
        )
        if not grown:
            break
        clients *= 2
    return points


def steady(study: CapacityStudy, rate_rps: float, document_ids: list[str], seed: int) -> Schedule:
    """Draw Poisson arrivals at a rate; all rates stretch the same random numbers."""
    arrivals = Steady(
        process="poisson",
        burstiness=1.0,
        rate_rps=rate_rps,
        load=None,
        warmup_s=study.open_warmup_s,
        duration_s=study.open_test_s,
    )
    return arrivals.schedule(rate_rps, document_ids, seed, 0)


def open_loop(
    probe: Probe,
    study: CapacityStudy,
    arm: Arm,
    capacity_rps: float,
    draw: Callable[[float], Schedule],
) -> list[OpenPoint]:
    """(b) Try the rates around the capacity, then bisect for the highest that stays good."""
    points: list[OpenPoint] = []

    def stays_good(rate_rps: float) -> bool:
        schedule = draw(rate_rps)
        requests, _, reasons = probe.run(
            arm,
            schedule,
            OpenLoop(),
            f"{rate_rps:.2f}/s",
            step="open",
            rate_rps=rate_rps,
        )
        window = (study.open_warmup_s, schedule.end_s)
        points.append(
            open_point(
                arm.name,
                rate_rps,
                requests=requests,
                window=window,
                slo=probe.slo,
                invalid_reasons=reasons,
            )
        )
        fraction = points[-1].good_fraction
        return fraction is not None and fraction >= study.good_fraction

    highest_passing(
        stays_good,
        [load * capacity_rps for load in study.loads],
        study.resolution * capacity_rps,
        study.load_limit * capacity_rps,
    )
    return points
