"""The capacity experiment's results, computed from its run folder's records alone."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analysis.capacity.points import (
    ClosedPoint,
    OpenPoint,
    closed_point,
    first_not_good,
    highest_good_rate,
    knee,
    open_point,
)
from analysis.frames import Run, load_run
from bellman.build import build_class
from bellman.errors import RunError
from bellman.load.schedule import CONGESTED
from bellman.slo import Slo


@dataclass(frozen=True)
class Study:
    """All points of a run, in the order they were measured."""

    run: Run
    """For captions: the records as one repeat."""
    closed: list[ClosedPoint]
    open_by_scale: dict[float, list[OpenPoint]]
    """The same episodes, judged by the SLO with its limits times the scale."""
    slo: Slo
    good_fraction: float
    capacity_rps: float

    def closed_of(self, arm: str) -> list[ClosedPoint]:
        """Return an arm's closed-loop points by rising number of clients."""
        found = [point for point in self.closed if point.arm == arm]
        return sorted(found, key=lambda point: point.clients)

    @property
    def open(self) -> list[OpenPoint]:
        """The open-loop points under the SLO as configured."""
        return self.open_by_scale[1.0]

    @property
    def open_length_s(self) -> float:
        """Length of an open-loop test: latencies above capacity grow with it."""
        return self.open[0].test_length_s if self.open else 0.0

    def open_of(self, arm: str, scale: float = 1.0) -> list[OpenPoint]:
        """Return an arm's open-loop points by rising rate."""
        found = [point for point in self.open_by_scale[scale] if point.arm == arm]
        return sorted(found, key=lambda point: point.rate_rps)

    def highest_good_rate(self, arm: str, scale: float = 1.0) -> float | None:
        """Return the highest rate of an arm that keeps the good fraction; None: none does."""
        return highest_good_rate(self.open_of(arm, scale), self.good_fraction)

    def no_limit_found(self, arm: str, scale: float = 1.0) -> bool:
        """Whether no rate is known to be too high, so that the highest is only a lower bound."""
        points = self.open_of(arm, scale)
        first = first_not_good(points, self.good_fraction)
        return bool(points) and (first is None or first.judged.keeps(self.good_fraction) is None)

    def unjudged(self, arm: str, scale: float = 1.0) -> OpenPoint | None:
        """Return the rate at which it is unknown whether the good fraction is kept, if one is."""
        first = first_not_good(self.open_of(arm, scale), self.good_fraction)
        unknown = first is not None and first.judged.keeps(self.good_fraction) is None
        return first if unknown else None

    def knee(self, arm: str) -> ClosedPoint | None:
        """Return where an arm's throughput stops growing."""
        points = self.closed_of(arm)
        return knee(points) if points else None


def load_study(folder: Path) -> Study:
    """Load a run folder of experiment=capacity; raises `RunError` for any other."""
    run = load_run(folder)
    told = run.config.get("study")
    if not isinstance(told, dict) or not any("step" in episode for episode in run.episodes):
        raise RunError(f"{folder}: not a run of experiment=capacity")
    scales = told.get("slo_scales") or [1.0]
    if run.capacity.get("capacity_rps") is None:
        raise RunError(f"{folder}: no capacity.json, the closed loops did not end: run it again")
    slo = build_class(Slo, run.config.get("slo") or {}, "slo")
    closed: dict[tuple[str, int], ClosedPoint] = {}
    opened: dict[float, list[OpenPoint]] = {float(scale): [] for scale in scales}
    for episode in run.episodes:
        part = {
            "requests": run.requests[run.requests["repeat"] == episode["repeat"]],
            "window": _window(episode),
            "invalid_reasons": tuple(episode["invalid_reasons"]),
        }
        if episode["step"] == "closed":
            ticks = run.timeline[run.timeline["repeat"] == episode["repeat"]]
            point = closed_point(episode["arm"], episode["clients"], timeline=ticks, **part)
            # A test that was too short was repeated: the last one counts.
            closed[point.arm, point.clients] = point
        else:
            for scale, points in opened.items():
                limits = slo.scaled(scale)
                points.append(open_point(episode["arm"], episode["rate_rps"], slo=limits, **part))
    return Study(
        run=replace(run, requests=run.requests.assign(repeat=0)),
        closed=list(closed.values()),
        open_by_scale=opened,
        slo=slo,
        good_fraction=float(told["good_fraction"]),
        capacity_rps=float(run.capacity["capacity_rps"]),
    )


def _window(episode: dict[str, Any]) -> tuple[float, float]:
    phase = next(phase for phase in episode["phases"] if phase["name"] == CONGESTED)
    return float(phase["start_s"]), float(phase["end_s"])
