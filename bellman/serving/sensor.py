"""The sensor in the server: what the door counted, split by what the engine reports."""

import asyncio
from collections.abc import Callable
from itertools import islice

from bellman.errors import in_one_line
from bellman.sensing.failure import SensorFailed
from bellman.sensing.observation import Observation
from bellman.serving.metrics import Reported


class Sensor:
    """Observes the load from requests in flight through this door and the engine's own metrics.

    The door's count is exact at any instant and knows requests that the engine has not seen yet.
    The engine's gauges lag by a step (a long prefill is one) and in a gateway by a scrape, and
    keep their last values where no further step comes. So where every request comes through
    this door, Q is the door's count and the gauges only split it: running = min(reported, Q),
    the rest waits. Where a server has further doors (`shared`), Q is the larger of the two.
    A server that reports nothing at all has every request counted as running.
    """

    def __init__(self, read: Callable[[], Reported], shared: bool) -> None:
        self._read = read
        self._shared = shared
        self._reported = Reported()
        self._arrivals_s: dict[object, float] = {}  # of those in flight, in their order
        self.elsewhere = 0
        """Requests at the gateways that share a signal store with this one, a period old."""

    @property
    def in_flight(self) -> int:
        """Generation requests between the end of their upload and the end of their response."""
        return len(self._arrivals_s)

    def enter(self) -> object:
        """Count a request from now on; returns what `leave` takes."""
        request = object()
        self._arrivals_s[request] = asyncio.get_running_loop().time()
        return request

    def leave(self, request: object) -> None:
        """Count it no more."""
        del self._arrivals_s[request]

    def sense(self) -> Observation:
        """Read the engine's metrics and observe: once a control period.

        Raises `SensorFailed`, from then on `observe` knows the door's count alone.
        """
        self._reported = Reported()
        try:
            report = self._read()
        except SensorFailed:
            raise
        except Exception as error:  # a registry's collectors and files are others' code
            raise SensorFailed(in_one_line(error)) from error
        missing = [name for name in ("running", "waiting") if getattr(report, name) is None]
        if missing and (self._shared or report != Reported()):
            raise SensorFailed(f"the server does not report its {' and '.join(missing)} requests")
        self._reported = report
        return self.observe()

    def observe(self) -> Observation:
        """Observe now, with the metrics of the last `sense`: cheap enough for every request."""
        engine = self._reported
        outstanding = self.in_flight + self.elsewhere
        if self._shared:
            outstanding = max(outstanding, (engine.running or 0) + (engine.waiting or 0))
        running = outstanding if engine.running is None else min(engine.running, outstanding)
        now_s = asyncio.get_running_loop().time()
        return Observation(
            time_s=now_s,
            waiting=outstanding - running,
            running=running,
            kv_usage=engine.kv_usage,
            prompt_tokens_total=engine.prompt_tokens_total,
            generated_tokens_total=engine.generated_tokens_total,
            preemptions_total=engine.preemptions_total,
            completed_total=engine.completed_total,
            oldest_waiting_s=self._oldest_waiting_s(running, now_s),
            queue_delay_sum_s=engine.queue_delay_sum_s,
            queue_delay_count=engine.queue_delay_count,
            ttft_sum_s=engine.ttft_sum_s,
            ttft_count=engine.ttft_count,
            e2e_sum_s=engine.e2e_sum_s,
            e2e_count=engine.e2e_count,
        )

    def _oldest_waiting_s(self, running: int, now_s: float) -> float | None:
        """Return the age of the first request that does not run, where the engine serves in order.

        First come first served, and the last to come is the first to be preempted: those that wait
        came last. None where the engine's gauge is missing, or requests come by other doors.
        """
        if self._shared or self.elsewhere or self._reported.running is None:
            return None
        first_waiting = islice(self._arrivals_s.values(), running, None)
        return max(0.0, now_s - next(first_waiting, now_s))
