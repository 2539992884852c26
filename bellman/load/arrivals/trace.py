"""Replays a recorded trace with one row a request."""

from collections.abc import Sequence
from pathlib import Path

from bellman.errors import require
from bellman.load.schedule import Schedule
from bellman.load.traces.table import cut_window, read_table
from bellman.load.traces.values import TimeUnit
from bellman.load.traces.workload import Workload
from bellman.schema import NotNegative, Positive, schema


@schema
class Trace:
    """Arrivals and lengths of a CSV, JSON Lines or parquet file; documents of the corpus.

    Without `load` and `rate_rps` the trace is played at its own speed.
    """

    path: str
    time_column: str
    time_unit: TimeUnit
    prompt_column: str | None
    """Column of prompt tokens; null when the trace has none."""
    output_column: str | None
    """Column of output tokens; null when the trace has none."""
    start_s: NotNegative
    """Start of the window that is replayed, in the trace's own time from its earliest row on."""
    length_s: Positive | None
    """Length of the window, in the trace's own time; null = to the end."""
    rate_rps: Positive | None
    """Mean rate to play the window at; null = by `load`, or as recorded."""
    load: Positive | None
    """Mean rate / capacity of the uncontrolled engine; null = by `rate_rps`, or as recorded."""
    warmup_s: NotNegative
    """First seconds of the replay that are never counted."""
    capacity_rps: Positive | None = None
    """Capacity of the uncontrolled engine; null = measure it, where `load` needs it."""
    hash_ids_column: str | None = None
    """Column of ids of the prompt's blocks, for the simulated prefix cache; null = none."""
    priority_column: str | None = None
    """Column of priorities, the lowest first, for the simulated engine; null = none."""

    def __post_init__(self) -> None:
        """Check that one thing at most sets the rate."""
        check_replay(self.rate_rps, self.load)

    @property
    def needs_capacity(self) -> bool:
        """Whether the capacity has to be measured before the schedule can be drawn."""
        return self.load is not None and self.capacity_rps is None

    def workload(self, seed: int, repeat: int) -> Workload:
        """Return the window of the trace at its own speed; nothing of it is drawn."""
        whole = read_table(
            Path(self.path),
            self.time_column,
            self.time_unit,
            prompt_column=self.prompt_column,
            output_column=self.output_column,
            hash_ids_column=self.hash_ids_column,
            priority_column=self.priority_column,
        )
        return cut_window(whole, self.start_s, self.length_s)

    def schedule(
        self, capacity_rps: float, document_ids: Sequence[str], seed: int, repeat: int
    ) -> Schedule:
        """Return the replay; repeats differ in their documents only."""
        workload = self.workload(seed, repeat)
        rate_rps = self.rate_rps if self.load is None else self.load * capacity_rps
        if rate_rps is not None:
            workload = workload.at_rate(rate_rps)
        return workload.schedule(self.warmup_s, document_ids, seed, repeat)


def check_replay(rate_rps: float | None, load: float | None) -> None:
    """Check that a replay's rate is not given twice."""
    one = rate_rps is None or load is None
    require(one, "rate_rps", rate_rps, "give rate_rps or load, not both")
