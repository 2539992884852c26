"""The capacity experiment's results, computed from its run folder's records alone."""

from dataclasses import dataclass
from pathlib import Path

from analysis.capacity.episode import point_records
from analysis.capacity.points import (
    ClosedPoint,
    OpenPoint,
    first_not_good,
    highest_slo_rate,
    knee,
)
from analysis.frames import Run, load_run
from analysis.plan import read_plan
from bellman.build import build_class
from bellman.errors import RunError
from bellman.slo import Slo


@dataclass(frozen=True)
class Study:
    """All points of a run, in the order they were measured."""

    run: Run
    closed: list[ClosedPoint]
    open_by_scale: dict[float, list[OpenPoint]]
    """The same episodes, judged by the SLO with its limits times the scale."""
    slo: Slo
    slo_attainment: float
    saturated: ClosedPoint | None
    """The closed loop without control in which throughput grew no more; None: it did not end."""

    @property
    def capacity_rps(self) -> float | None:
        """Throughput of the saturated engine without control."""
        return None if self.saturated is None else self.saturated.throughput_rps

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

    def highest_slo_rate(self, arm: str, scale: float = 1.0) -> float | None:
        """Return the highest rate of an arm that keeps the SLO attainment; None: none does."""
        return highest_slo_rate(self.open_of(arm, scale), self.slo_attainment)

    def no_limit_found(self, arm: str, scale: float = 1.0) -> bool:
        """Whether no rate is known to be too high, so that the highest is only a lower bound."""
        points = self.open_of(arm, scale)
        first = first_not_good(points, self.slo_attainment)
        return bool(points) and (first is None or first.judged.keeps(self.slo_attainment) is None)

    def unjudged(self, arm: str, scale: float = 1.0) -> OpenPoint | None:
        """Return the rate at which it is unknown whether the SLO attainment is kept, if one is."""
        first = first_not_good(self.open_of(arm, scale), self.slo_attainment)
        unknown = first is not None and first.judged.keeps(self.slo_attainment) is None
        return first if unknown else None

    def knee(self, arm: str) -> ClosedPoint | None:
        """Return where an arm's throughput stops growing."""
        points = self.closed_of(arm)
        return knee(points) if points else None


def load_study(folder: Path) -> Study:
    """Load a gathered run folder of experiment=capacity; raises `RunError` for any other."""
    run = load_run(folder)
    told = run.config.get("study")
    if not isinstance(told, dict) or "slo_attainment" not in told:
        raise RunError(f"{folder}: not a run of experiment=capacity")
    scales = told.get("slo_scales") or [1.0]
    slo = build_class(Slo, run.config.get("slo") or {}, "slo")
    closed: dict[tuple[str, int], ClosedPoint] = {}
    opened: dict[float, list[OpenPoint]] = {float(scale): [] for scale in scales}
    for episode in run.episodes:
        requests, timeline = (
            frame[frame["episode_id"] == episode["episode_id"]]
            for frame in (run.requests, run.timeline)
        )
        found = point_records(episode, requests, timeline)
        arm, axes = episode["arm"], episode["axes"]
        if axes["step"] == "closed":
            # A test that was too short was repeated: the last one counts.
            closed[arm, axes["clients"]] = found.closed(arm, axes["clients"])
        else:
            for scale, points in opened.items():
                points.append(found.open(arm, axes["rate_rps"], slo.scaled(scale)))
    baseline = [point for point in closed.values() if point.arm == run.baseline]
    ended = any(cell.axes.get("step") == "open" for cell in read_plan(folder))
    return Study(
        run=run,
        closed=list(closed.values()),
        open_by_scale=opened,
        slo=slo,
        slo_attainment=float(told["slo_attainment"]),
        saturated=baseline[-1] if baseline and ended else None,
    )
