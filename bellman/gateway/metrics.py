"""The gateway's metrics in Prometheus' form: signal, queue, requests and store, by endpoint.

Several worker processes count in files that they share (prometheus-client's multiprocess mode), so
that any of them answers for all. What is one number for the endpoint, the answering one tells.
"""

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bellman.gateway.route import Route
from bellman.serving.metrics import MULTIPROCESS
from bellman.serving.middleware import GENERATING

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)
"""Upper edges of the histograms: from a first byte without a queue to the end of a long one."""
CLIENT_LEFT = "499"
"""Stands for the status of a request whose client left before there was any."""
ENDPOINT = "endpoint"
NOW = {
    "bellman_congestion_level": "Published level; absent while there is none.",
    "bellman_congestion_level_age_seconds": "Since a level was published last.",
    "bellman_requests_running": "Requests in the engine's batch, of all gateways; absent unknown.",
    "bellman_requests_waiting": "Requests before the batch, of all gateways; absent while unknown.",
    "bellman_gateways": "Gateways that share the signal, as the store knows them.",
    "bellman_store_up": "1 while the signal store answers this gateway, else 0.",
}
"""Gauges of the endpoint, which the answering process tells; one without a value is left out."""


class GatewayMetrics:
    """Counts what the gateway's processes do, and writes it down with what they know."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more for each
        self._several = MULTIPROCESS in os.environ
        self._registry = CollectorRegistry()
        self._seen: dict[tuple[int, str], float] = {}

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, (ENDPOINT, *labels), registry=self._registry)

        def seconds(name: str, text: str) -> Histogram:
            return Histogram(name, text, (ENDPOINT,), buckets=SECONDS, registry=self._registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(
                name, text, (ENDPOINT,), registry=self._registry, multiprocess_mode="livesum"
            )

        self._answered = counter(
            "bellman_requests", "Generation requests by status; 499: the client left first.", "code"
        )
        self._spilled = counter("bellman_requests_spilled", "Requests passed on to the next one.")
        self._resent = counter(
            "bellman_requests_resent", "Requests sent again: their connections were stale."
        )
        self._refused = counter("bellman_requests_refused", "Requests that the admission refused.")
        self._outages = counter("bellman_congestion_outages", "Times the level was withdrawn.")
        self._store_outages = counter("bellman_store_outages", "Times the signal store failed.")
        self._in_flight = gauge(
            "bellman_requests_in_flight", "Generation requests outstanding at this gateway."
        )
        self._lease = gauge("bellman_lease_held", "1 where this gateway runs the law, else 0.")
        self._energy = Counter(
            "bellman_energy_joules",
            "Joules of the server's devices on a host; absent where none are measured.",
            ("host",),
            registry=self._registry,
        )
        self._duration = seconds(
            "bellman_request_duration_seconds", "From a request's head to its answer's last byte."
        )
        self._first_byte = seconds(
            "bellman_time_to_first_byte_seconds",
            "From a request's head to its answer's first byte.",
        )

    def measured(self, route: Route) -> ASGIApp:
        """Return the route's app, which counts and times what generates."""
        name = route.endpoint_id
        duration, first_byte = self._duration.labels(name), self._first_byte.labels(name)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] != "POST" or not scope["path"].endswith(GENERATING):
                await route.app(scope, receive, send)
                return
            start_s = time.monotonic()
            code, begun = CLIENT_LEFT, False

            async def timed_send(message: Message) -> None:
                nonlocal code, begun
                if message["type"] == "http.response.start":
                    code = str(message["status"])
                elif message.get("body") and not begun:
                    begun = True
                    first_byte.observe(time.monotonic() - start_s)
                await send(message)

            try:
                await route.app(scope, receive, timed_send)
            finally:
                duration.observe(time.monotonic() - start_s)
                self._answered.labels(name, code).inc()

        return app

    def count_spilled(self, endpoint_id: str) -> None:
        """Count a request that an upstream did not take."""
        self._spilled.labels(endpoint_id).inc()

    def count_energy(self, host: str, energy_j: float) -> None:
        """Count joules of a host."""
        self._energy.labels(host).inc(energy_j)

    def take(self, routes: Sequence[Route]) -> None:
        """Bring the counts up to date with what the routes count themselves."""
        for route in routes:
            name, state, shared = route.endpoint_id, route.app.state(), route.shared
            self._in_flight.labels(name).set(route.in_flight)
            self._raise(self._resent, name, route.resent)
            self._raise(self._refused, name, state["refused_total"])
            self._raise(self._outages, name, state["outages_total"])
            self._spilled.labels(name)  # there from the start, at 0
            if shared is not None:
                self._lease.labels(name).set(shared.token is not None)
                self._raise(self._store_outages, name, shared.store_outages)

    def _raise(self, counter: Counter, endpoint_id: str, total: Any) -> None:
        """Count on to a total; one that fell begins anew."""
        key = (id(counter), endpoint_id)
        before = self._seen.get(key, 0)
        counter.labels(endpoint_id).inc(total - before if total >= before else total)
        self._seen[key] = total

    def exposition(self, routes: Sequence[Route]) -> bytes:
        """Return the metrics as text."""
        self.take(routes)
        registry = self._registry
        if self._several:
            registry = CollectorRegistry()
            registry.register(_OfAllProcesses(Path(os.environ[MULTIPROCESS])))
        now = CollectorRegistry()
        now.register(_Now(routes))
        return generate_latest(registry) + generate_latest(now)


class _Now(Collector):
    """What the routes know at this instant."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes

    def collect(self) -> Iterable[Metric]:
        families = {
            name: GaugeMetricFamily(name, text, labels=(ENDPOINT,)) for name, text in NOW.items()
        }
        for route in self._routes:
            for name, value in zip(NOW, _values(route), strict=True):
                if value is not None:
                    families[name].add_metric((route.endpoint_id,), value)
        return families.values()


def _values(route: Route) -> tuple[float | None, ...]:
    """Return a route's values of `NOW`, in its order."""
    state: Any = route.app.state()
    observation, shared = state["observation"] or {}, route.shared
    return (
        state["level"],
        state["age_s"],
        observation.get("running"),
        observation.get("waiting"),
        None if shared is None else shared.gateways,
        None if shared is None else float(shared.store_failure is None),
    )


class _OfAllProcesses(Collector):
    """What the worker processes have counted in their files; those of killed ones stay counted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        files = []
        for file in self._folder.glob("*.db"):
            process_id = int(file.stem.rpartition("_")[2])
            if file.name.startswith("gauge_live") and not psutil.pid_exists(process_id):
                mark_process_dead(process_id)  # type: ignore[no-untyped-call]
                continue
            # One that a starting process has just opened is empty, which the reader cannot take.
            with suppress(FileNotFoundError):
                if file.stat().st_size > 0:
                    files.append(str(file))
        metrics: Iterable[Metric] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return metrics
