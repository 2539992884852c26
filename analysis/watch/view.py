"""What is shown of a run that goes on, as plain values: the page and the terminal show the same."""

from dataclasses import dataclass, field
from typing import Any, Literal

from analysis.watch.samples import Sample
from bellman.load.schedule import Outline

State = Literal["in progress", "cut", "failed"]
Latency = float | Literal["lost"] | None
"""Seconds; `lost` where so many requests did not end ok that the percentile is one of them."""


@dataclass(frozen=True)
class CellView:
    """A cell that has begun and is not done."""

    label: str
    kind: str
    state: State
    source: str | None
    schedule: Outline | None
    """How many requests are intended, and how long that takes without the drain."""
    sample: Sample | None
    """The last one, in the cell's own time; its joules are since the meter's start."""
    ended: dict[str, int]
    """Requests by status."""
    p50_s: Latency
    p99_s: Latency
    """End-to-end latency of the last requests that ended."""
    latencies: int
    """How many those are."""
    notes: list[str]
    curves: dict[str, list[Any]] = field(default_factory=dict)
    """Samples by quantity: time_s, level, waiting, running."""


@dataclass(frozen=True)
class RunView:
    """A whole run at one look."""

    folder: str
    title: str
    state: str
    """What status.json says, and whether a process holds the folder."""
    holds: bool | None
    source: str
    """`simulated`, `measured`, both, or that nothing tells yet."""
    cells_planned: int
    cells_done: int
    cells_failed: int
    energy_j: float | None
    """Of the episodes that are done, without their warm-up."""
    energy_text: str
    """Of how many episodes it is, or why there is none."""
    left_s: float | None
    left_how: str
    open: list[CellView]
    warnings: list[str]
    notes: list[str]
    looked_at: str
    """The watcher's time of day."""
