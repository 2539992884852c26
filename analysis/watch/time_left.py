"""How long a run will still take, as far as the cells that are done tell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from analysis.plan import PlannedCell
from analysis.watch.cells import DoneCell


@dataclass(frozen=True)
class TimeLeft:
    """An estimate, and what it rests on."""

    seconds: float | None
    """On the wall's clock; None where nothing tells."""
    how: str


def time_left(
    planned: Sequence[PlannedCell],
    done: Mapping[str, DoneCell],
    elapsed_s: Mapping[str, float],
    schedule_s: float | None,
) -> TimeLeft:
    """Estimate the time of the cells that are not done.

    `elapsed_s` has those in progress, by key; as many are taken to go on at once. A cell takes what
    cells of its kind took on average; before the first of them is done, `schedule_s`, where known:
    an episode's schedule in real time, without the drain.
    """
    missing = [cell for cell in planned if cell.key not in done]
    if not missing:
        return TimeLeft(0.0, "all planned cells are done; tables and figures may be in the making")
    took_s = _mean_by_kind(done.values())
    by_schedule = {cell.kind for cell in missing} - took_s.keys()
    if by_schedule and schedule_s is None:
        kinds = ", ".join(sorted(by_schedule))
        return TimeLeft(None, f"not known before the first {kinds} is done")
    left_s = sum(
        max(0.0, took_s.get(cell.kind, schedule_s or 0.0) - elapsed_s.get(cell.key, 0.0))
        for cell in missing
    )
    basis = f"{len(done)} done and {len(missing)} missing of the cells planned so far"
    if by_schedule:
        return TimeLeft(left_s, f"at least, by the schedule's length without drain; {basis}")
    return TimeLeft(left_s / max(1, len(elapsed_s)), f"estimated from {basis}")


def _mean_by_kind(done: Iterable[DoneCell]) -> dict[str, float]:
    took_s: dict[str, list[float]] = {}
    for cell in done:
        took_s.setdefault(cell.kind, []).append(cell.wall_s)
    return {kind: fmean(values) for kind, values in took_s.items()}
