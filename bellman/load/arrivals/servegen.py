"""Draws a workload from ServeGen's production clients."""

from collections.abc import Sequence
from pathlib import Path

from bellman.load.arrivals.trace import check_replay
from bellman.load.schedule import Schedule, time_generator
from bellman.load.traces.servegen import draw_workload
from bellman.load.traces.workload import Workload
from bellman.schema import Count, NotNegative, Positive, schema


@schema
class ServeGen:
    """Arrivals and lengths of the busiest clients in a window of the data; documents of the corpus.

    Without `load` and `rate_rps` the clients send at their own rates.
    """

    path: str
    """Folder of one model, with chunk-N-trace.csv and chunk-N-dataset.json."""
    start_s: NotNegative
    """Start of the window, in seconds of the data."""
    length_s: Positive
    """Length of the window, in seconds of the data."""
    clients: Count | None
    """How many of the busiest clients; null = all."""
    rate_rps: Positive | None
    """Mean rate to play the window at; null = by `load`, or the clients' own."""
    load: Positive | None
    """Mean rate / capacity of the uncontrolled engine; null = by `rate_rps`, or their own."""
    warmup_s: NotNegative
    """First seconds of the replay that are never counted."""
    capacity_rps: Positive | None = None
    """Capacity of the uncontrolled engine; null = measure it, where `load` needs it."""

    def __post_init__(self) -> None:
        """Check that one thing at most sets the rate."""
        check_replay(self.rate_rps, self.load)

    @property
    def needs_capacity(self) -> bool:
        """Whether the capacity has to be measured before the schedule can be drawn."""
        return self.load is not None and self.capacity_rps is None

    def workload(self, seed: int, repeat: int) -> Workload:
        """Draw the window at the clients' own rates."""
        generator = time_generator(seed, repeat)
        return draw_workload(Path(self.path), self.start_s, self.length_s, self.clients, generator)

    def schedule(
        self, capacity_rps: float, document_ids: Sequence[str], seed: int, repeat: int
    ) -> Schedule:
        """Draw the schedule; repeats differ in times, lengths and documents."""
        workload = self.workload(seed, repeat)
        rate_rps = self.rate_rps if self.load is None else self.load * capacity_rps
        if rate_rps is not None:
            workload = workload.at_rate(rate_rps)
        return workload.schedule(self.warmup_s, document_ids, seed, repeat)
