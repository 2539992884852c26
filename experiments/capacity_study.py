"""What the capacity experiment is told: the node `study` of its YAML."""

import math
from dataclasses import dataclass

from bellman.errors import require


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
