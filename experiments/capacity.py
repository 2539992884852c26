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
from functools import partial

from rich.console import Console

from analysis import metrics
from analysis.capacity.points import ClosedPoint, OpenPoint, closed_point, open_point
from bellman.corpus.base import Corpus
from bellman.engines.base import Engine
from bellman.engines.runtime import running
from bellman.episode import Arm
from bellman.errors import RunError
from bellman.load.arrivals.steady import Steady
from bellman.load.bracket import highest_passing
from bellman.load.completion_rate import INTERVAL_METHOD
from bellman.load.models.closed_loop import ClosedLoop
from bellman.load.models.open_loop import OpenLoop
from bellman.load.schedule import CONGESTED, Phase, Schedule, ScheduledRequest, draw_documents
from bellman.records import WARMUP, write_json
from bellman.run_folder import RunFolder
from bellman.settings import Settings
from bellman.slo import Slo
from experiments.capacity_study import CapacityStudy
from experiments.probe import Probe
from experiments.progress import RunProgress
from experiments.recorded_episode import Parts, app_maker
from experiments.recorder import Recorder

CLOSED_DOCUMENTS = 10_000
"""Requests of the closed loop before its documents start again from the first."""


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
        make_app = app_maker(settings, corpus, engine, recorder.texts)
        parts = Parts(settings, engine, document_ids, make_app, run_coroutine)
        probe = Probe(parts, recorder, progress)
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
                "low_rps": saturated.low_rps,
                "high_rps": saturated.high_rps,
                "interval": INTERVAL_METHOD,
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
        points.append(closed_tests(probe, study, arm, clients, latency_s=latency_s, draw=draw))
        grown = len(points) < 2 or (
            points[-1].throughput_rps >= (1 + study.growth) * points[-2].throughput_rps
        )
        if not grown:
            break
        clients *= 2
    return points


def closed_tests(
    probe: Probe,
    study: CapacityStudy,
    arm: Arm,
    clients: int,
    *,
    latency_s: float,
    draw: Callable[[float], Schedule],
) -> ClosedPoint:
    """Test a number of clients, and again for longer while too few are answered; the last counts.

    `latency_s` is the one to expect. Raises `RunError` when the next test would end too late.
    """
    spent_s = 0.0
    while True:
        schedule = draw(latency_s)
        counted = schedule.phases[-1]
        requests, timeline, reasons = probe.run(
            arm,
            schedule,
            ClosedLoop(clients, 0.0),
            f"{clients} clients",
            step="closed",
            clients=clients,
        )
        point = closed_point(
            arm.name,
            clients,
            requests=requests,
            timeline=timeline,
            window=(counted.start_s, counted.end_s),
            invalid_reasons=reasons,
        )
        if point.completed >= study.closed_completions and point.completed > clients:
            return point
        spent_s += schedule.end_s
        # What was answered later, while the episode ended, says how long it takes; else guess.
        seen_s = metrics.latency_mean(requests, "e2e_s") or 0.0
        answers = max(study.closed_completions, 2 * clients) + clients
        test_s = max(1.5 * counted.length_s, 1.2 * seen_s * answers / clients)
        latency_s = test_s / study.closed_lifetimes
        if spent_s + draw(latency_s).end_s > study.closed_deadline_s:
            raise RunError(
                f"study.closed_deadline_s={study.closed_deadline_s:g}: {clients} clients had only "
                f"{point.completed} answers in a test of {counted.length_s:g} s, and the next "
                f"would take {test_s:g} s; raise it"
            )


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
) -> None:
    """(b) Try the rates around the capacity, then bisect for the highest that stays good.

    Once for every scale of the SLO; a rate that was run once is judged again from its records.
    """
    points: dict[float, Callable[[Slo], OpenPoint]] = {}

    def run_point(rate_rps: float) -> Callable[[Slo], OpenPoint]:
        schedule = draw(rate_rps)
        label = f"{rate_rps:.2f}/s"
        requests, _, reasons = probe.run(
            arm, schedule, OpenLoop(), label, step="open", rate_rps=rate_rps
        )
        window = (study.open_warmup_s, schedule.end_s)
        return lambda slo: open_point(
            arm.name,
            rate_rps,
            requests=requests,
            window=window,
            slo=slo,
            invalid_reasons=reasons,
        )

    def stays_good(slo: Slo, rate_rps: float) -> bool:
        if rate_rps not in points:
            points[rate_rps] = run_point(rate_rps)
        return points[rate_rps](slo).judged.keeps(study.good_fraction) is True

    for scale in study.slo_scales:
        highest_passing(
            partial(stays_good, probe.slo.scaled(scale)),
            [load * capacity_rps for load in study.loads],
            study.resolution * capacity_rps,
            study.load_limit * capacity_rps,
        )
