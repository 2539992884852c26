"""How much load is too much: closed loop, open loop around it, and the highest rate under an SLO.

(a) A closed loop with more and more clients finds where throughput stops growing: the capacity.
    Little's law is checked at every point; its latencies are not what users wait.
(b) Poisson arrivals at rates around the capacity give what users wait, goodput and the good
    fraction; bisection finds the highest rate that keeps a good fraction under the SLO.
(c) Offered against achieved rate and e2e against service latency of the same episodes say whether
    the load generator kept up.

All under every arm, side by side, so that the last line says how much more load the SLO carries.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from analysis import metrics
from analysis.capacity.episode import PointRecords, read_point
from analysis.capacity.points import ClosedPoint
from bellman.errors import RunError, require
from bellman.load.bracket import highest_passing
from bellman.settings import Settings
from experiments.cells.episode import EpisodeCell
from experiments.perform import Outcome
from experiments.studies.base import Cells, Search
from experiments.studies.together import together

CLOSED_DOCUMENTS = 10_000
"""Requests of the closed loop before its documents start again from the first."""


@dataclass(frozen=True)
class Capacity:
    """The closed loop and the open one, under every arm."""

    clients_limit: int
    """The closed loop doubles its clients from 1 on, up to this many."""
    growth: float
    """The closed loop ends when doubling the clients raises throughput by less than this share."""
    closed_warmup_s: float
    closed_test_s: float
    closed_lifetimes: float
    """The test lasts at least this many latencies, the warm-up a quarter as many: a request that
    is cut by the window's edge must not matter."""
    closed_completions: int
    """A test with fewer completions than this, or not more than clients, is repeated for longer:"""
    closed_deadline_s: float
    """all tests of a number of clients together at most so long, warm-up included."""
    loads: list[float]
    """Rates of the open loop / capacity of the closed loop without control."""
    open_warmup_s: float
    open_test_s: float
    good_fraction: float
    """Share of good requests that a rate has to keep."""
    slo_scales: list[float]
    """The rate is found for the limits of `slo` and for these multiples of them: what the same
    service carries for users who would wait longer, or less."""
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
        completions = self.closed_completions
        require(completions >= 1, "study.closed_completions", completions, "must be 1 or more")
        least_s = self.closed_warmup_s + self.closed_test_s
        require(
            self.closed_deadline_s >= least_s,
            "study.closed_deadline_s",
            self.closed_deadline_s,
            f"must be at least study.closed_warmup_s + study.closed_test_s = {least_s:g}",
        )
        valid = len(self.loads) > 0 and min(self.loads) > 0
        require(valid, "study.loads", self.loads, "must be a list of numbers greater than 0")
        top = max(self.loads, default=0.0)
        require(self.load_limit >= top, "study.load_limit", self.load_limit, f"must be >= {top}")
        scales = self.slo_scales
        valid = 1.0 in scales and all(0 < scale < math.inf for scale in scales)
        require(valid, "study.slo_scales", scales, "must be numbers greater than 0, 1 among them")
        require(
            0 < self.good_fraction <= 1,
            "study.good_fraction",
            self.good_fraction,
            "must be in (0, 1]",
        )

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
                    rates = bracket.send([one.keeps(self.good_fraction) is True for one in judged])

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
