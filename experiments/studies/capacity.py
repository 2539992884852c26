"""How much load is too much: closed loop, open loop around it, and the highest rate under an SLO.

(a) A closed loop with more and more clients finds where throughput stops growing: the capacity.
    Little's law is checked at every point; its latencies are not what users wait.
(b) Poisson arrivals at rates around the capacity give what users wait, goodput and the SLO's
    attainment; bisection finds the highest rate that keeps it.
(c) Offered against achieved rate and e2e against service latency of the same episodes say whether
    the load generator kept up.

All under every arm, side by side, so that the last line says how much more load the SLO carries.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field

from analysis import metrics
from analysis.capacity.episode import PointRecords, read_point
from analysis.capacity.points import ClosedPoint
from bellman.errors import RunError, require
from bellman.load.bracket import highest_passing
from bellman.schema import Count, NotNegative, OneOrMore, Positive, Share, schema
from bellman.settings import Settings
from experiments.cells.episode import EpisodeCell
from experiments.perform import Outcome
from experiments.studies.base import Cells, Search
from experiments.studies.together import together

CLOSED_DOCUMENTS = 10_000
"""Requests of the closed loop before its documents start again from the first."""


@schema
class Capacity:
    """The closed loop and the open one, under every arm."""

    clients_limit: Annotated[int, Field(ge=2)]
    """The closed loop doubles its clients from 1 on, up to this many."""
    growth: Positive
    """The closed loop ends when doubling the clients raises throughput by less than this share."""
    closed_warmup_s: NotNegative
    closed_test_s: Positive
    closed_lifetimes: Positive
    """The test lasts at least this many latencies, the warm-up a quarter as many: a request that
    is cut by the window's edge must not matter."""
    closed_completions: Count
    """A test with fewer completions than this, or not more than clients, is repeated for longer:"""
    closed_deadline_s: Positive
    """all tests of a number of clients together at most so long, warm-up included."""
    loads: OneOrMore[Positive]
    """Rates of the open loop / capacity of the closed loop without control."""
    open_warmup_s: NotNegative
    open_test_s: Positive
    slo_attainment: Share
    """Share of good requests that a rate has to keep."""
    slo_scales: list[Positive]
    """The rate is found for the limits of `slo` and for these multiples of them: what the same
    service carries for users who would wait longer, or less."""
    resolution: Positive
    """Width at which the bisection ends, as a share of the capacity."""
    load_limit: Positive
    """Highest rate tried / capacity."""

    def __post_init__(self) -> None:
        """Check what several entries must keep together."""
        least_s, deadline_s = self.closed_warmup_s + self.closed_test_s, self.closed_deadline_s
        enough = f"must be at least closed_warmup_s + closed_test_s = {least_s:g}"
        require(deadline_s >= least_s, "closed_deadline_s", deadline_s, enough)
        top = max(self.loads)
        require(self.load_limit >= top, "load_limit", self.load_limit, f"must be {top:g} or more")
        require(1 in self.slo_scales, "slo_scales", self.slo_scales, "must have 1 among them")

    def check(self, settings: Settings) -> None:
        """There is nothing that it cannot run."""

    def facts(self, settings: Settings) -> dict[str, Any]:
        """There is nothing more to know."""
        return {}

    def cells(self, settings: Settings) -> Cells:
        """Yield the closed loops of all arms, then their open ones.

        A point that fails ends its own search; without the baseline's capacity there is no (b).
        """
        arms = list(settings.arms)
        closed = yield from together([self.closed_loop(settings, arm) for arm in arms])
        without_control = closed[arms.index(settings.run.baseline)]
        if without_control is not None:
            capacity_rps = without_control.throughput_rps
            yield from together([self.open_loop(settings, arm, capacity_rps) for arm in arms])

    def closed_loop(self, settings: Settings, arm: str) -> Search[ClosedPoint | None]:
        """(a) Double the clients until throughput grows no more; return the last point."""
        points: list[ClosedPoint] = []
        clients = 1
        while clients <= self.clients_limit:
            # The latency to expect, by Little's law if throughput stays what it was.
            latency_s = clients / points[-1].throughput_rps if points else 0.0
            point = yield from self.closed_tests(settings, arm, clients, latency_s)
            if point is None:
                return None
            points.append(point)
            grown = len(points) < 2 or (
                points[-1].throughput_rps >= (1 + self.growth) * points[-2].throughput_rps
            )
            if not grown:
                break
            clients *= 2
        return points[-1]

    def closed_tests(
        self, settings: Settings, arm: str, clients: int, latency_s: float
    ) -> Search[ClosedPoint | None]:
        """Test some clients, and again for longer while too few are answered; the last counts.

        `latency_s` is the one to expect. Raises `RunError` when the next test would end too late.
        """
        spent_s = 0.0
        while True:
            warmup_s, test_s = self.closed_lengths_s(latency_s)
            (outcome,) = yield [self.closed_cell(settings, arm, clients, latency_s)]
            found = records_of(outcome)
            if found is None:
                return None
            point = found.closed(arm, clients)
            if point.completed >= self.closed_completions and point.completed > clients:
                return point
            spent_s += warmup_s + test_s
            # What was answered later, while the episode ended, says how long it takes; else guess.
            seen_s = metrics.latency_mean(found.requests, "e2e_s") or 0.0
            answers = max(self.closed_completions, 2 * clients) + clients
            longer_s = max(1.5 * test_s, 1.2 * seen_s * answers / clients)
            latency_s = longer_s / self.closed_lifetimes
            if spent_s + sum(self.closed_lengths_s(latency_s)) > self.closed_deadline_s:
                raise RunError(
                    f"study.closed_deadline_s={self.closed_deadline_s:g}: {clients} clients under "
                    f"{arm} had only {point.completed} answers in a test of {test_s:g} s, and the "
                    f"next would take {longer_s:g} s; raise it"
                )

    def closed_lengths_s(self, latency_s: float) -> tuple[float, float]:
        """Return the lengths of warm-up and test for a latency to expect."""
        return (
            max(self.closed_warmup_s, self.closed_lifetimes * latency_s / 4),
            max(self.closed_test_s, self.closed_lifetimes * latency_s),
        )

    def closed_cell(
        self, settings: Settings, arm: str, clients: int, latency_s: float
    ) -> EpisodeCell:
        """Return the episode of some clients in a circle."""
        warmup_s, test_s = self.closed_lengths_s(latency_s)
        arrivals = {
            "_target_": "bellman.load.arrivals.closed_test.ClosedTest",
            "warmup_s": warmup_s,
            "duration_s": test_s,
            "documents": CLOSED_DOCUMENTS,
        }
        model = {
            "_target_": "bellman.load.models.closed_loop.ClosedLoop",
            "clients": clients,
            "think_s": 0.0,
        }
        axes = {"step": "closed", "clients": clients}
        return point_cell(settings, arm, axes, {"arrivals": arrivals, "load_model": model})

    def open_loop(self, settings: Settings, arm: str, capacity_rps: float) -> Search[None]:
        """(b) Try the rates around the capacity, then bisect for the highest that stays good.

        Once for every scale of the SLO; a rate that was run once is judged again from its records.
        """
        points: dict[float, PointRecords] = {}
        for scale in self.slo_scales:
            slo = settings.slo.scaled(scale)
            bracket = highest_passing(
                [load * capacity_rps for load in self.loads],
                self.resolution * capacity_rps,
                self.load_limit * capacity_rps,
            )
            with suppress(StopIteration):  # the bracket is found
                rates = next(bracket)
                while True:
                    new = [rate_rps for rate_rps in rates if rate_rps not in points]
                    outcomes = yield [self.open_cell(settings, arm, rate) for rate in new]
                    for rate_rps, outcome in zip(new, outcomes, strict=True):
                        found = records_of(outcome)
                        if found is None:
                            return
                        points[rate_rps] = found
                    judged = [points[rate].open(arm, rate, slo).judged for rate in rates]
                    rates = bracket.send([one.keeps(self.slo_attainment) is True for one in judged])

    def open_cell(self, settings: Settings, arm: str, rate_rps: float) -> EpisodeCell:
        """Return the episode of Poisson arrivals; all rates stretch the same random numbers."""
        arrivals = {
            "_target_": "bellman.load.arrivals.steady.Steady",
            "process": "poisson",
            "burstiness": 1.0,
            "rate_rps": rate_rps,
            "load": None,
            "warmup_s": self.open_warmup_s,
            "duration_s": self.open_test_s,
        }
        model = {"_target_": "bellman.load.models.open_loop.OpenLoop"}
        axes = {"step": "open", "rate_rps": rate_rps}
        return point_cell(settings, arm, axes, {"arrivals": arrivals, "load_model": model})


def point_cell(
    settings: Settings, arm: str, axes: Mapping[str, Any], load: Mapping[str, Any]
) -> EpisodeCell:
    """Return an episode with a load of its own."""
    point = f"{axes['clients']} clients" if "clients" in axes else f"{axes['rate_rps']:.2f}/s"
    return EpisodeCell(
        arm=arm,
        repeat=0,
        values={**settings.episode_values(arm), **load},
        capacity_rps=None,
        source=settings.engine.source,
        label=f"{point} {arm}",
        axes=axes,
    )


def records_of(outcome: Outcome) -> PointRecords | None:
    """Return what an episode recorded; None where it failed."""
    return None if outcome.content is None else read_point(outcome.folder, outcome.content)
