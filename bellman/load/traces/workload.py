"""A workload as arrays, and its replay: a window of it, at another rate, with the same bursts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bellman.errors import RunError
from bellman.load.arrivals.base import checked
from bellman.load.schedule import CONGESTED, Phase, Schedule, ScheduledRequest, draw_documents
from bellman.records import WARMUP


@dataclass(frozen=True)
class Workload:
    """Requests of a trace in order of time, over `duration_s` seconds from 0 on."""

    times_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int32] | None
    output_tokens: NDArray[np.int32] | None
    duration_s: float
    left_out: dict[str, int] = field(default_factory=dict)
    hash_ids: Sequence[tuple[int, ...]] | None = None
    priorities: NDArray[np.int32] | None = None

    @property
    def rate_rps(self) -> float:
        """Mean rate of the trace itself."""
        return len(self.times_s) / self.duration_s

    def at_rate(self, rate_rps: float) -> "Workload":
        """Return the workload played faster or slower, so that `rate_rps` is its mean rate.

        All gaps shrink or grow alike, so a burst stays a burst: counts in windows that are scaled
        with it, and with them the index of dispersion, are unchanged. Thinning would not do that.
        """
        speed = rate_rps / self.rate_rps
        return replace(self, times_s=self.times_s / speed, duration_s=self.duration_s / speed)

    def schedule(
        self, warmup_s: float, document_ids: Sequence[str], seed: int, repeat: int
    ) -> Schedule:
        """Return the schedule: the first `warmup_s` are warm-up, the rest is `congested`."""
        if warmup_s >= self.duration_s:
            raise RunError(
                f"the trace lasts {self.duration_s:.1f} s at this rate and "
                f"arrivals.warmup_s={warmup_s} leaves nothing of it"
            )
        times_s = np.floor(self.times_s * 1e6 + 1e-3) / 1e6
        prompt_tokens, output_tokens, priorities = (
            [None] * len(times_s) if column is None else column.tolist()
            for column in (self.prompt_tokens, self.output_tokens, self.priorities)
        )
        documents = draw_documents(document_ids, len(times_s), seed, repeat)
        requests = tuple(
            ScheduledRequest(
                index,
                time_s,
                documents[index],
                WARMUP if time_s < warmup_s else CONGESTED,
                prompt_tokens[index],
                output_tokens[index],
                None if self.hash_ids is None else self.hash_ids[index],
                priorities[index],
            )
            for index, time_s in enumerate(times_s.tolist())
        )
        warm = int(np.searchsorted(times_s, warmup_s))
        counted_s = self.duration_s - warmup_s
        phases = [Phase(CONGESTED, warmup_s, self.duration_s, (len(times_s) - warm) / counted_s)]
        if warmup_s > 0:
            phases.insert(0, Phase(WARMUP, 0.0, warmup_s, warm / warmup_s))
        return checked(Schedule(requests, tuple(phases), self.duration_s, dict(self.left_out)))
