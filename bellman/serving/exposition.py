"""The signal's own state as Prometheus text."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Value = float | None


class _Families(Collector):
    """Metrics that exist for one answer: nothing is kept in the server's own registry."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def exposition(
    *, level: Value, age_s: Value, in_flight: int, refused_total: int, outages_total: int
) -> bytes:
    """Return the metrics; one without a value is left out."""
    gauges = (
        ("bellman_congestion_level", "Published level; absent while none is.", level),
        ("bellman_congestion_level_age_seconds", "Since a level was published last.", age_s),
        ("bellman_requests_in_flight", "Generation requests outstanding at this door.", in_flight),
    )
    counters = (
        ("bellman_requests_refused", "Requests that the admission refused.", refused_total),
        ("bellman_congestion_outages", "Times the level had to be withdrawn.", outages_total),
    )
    families: list[Metric] = [
        GaugeMetricFamily(name, text, value) for name, text, value in gauges if value is not None
    ]
    families += [CounterMetricFamily(name, text, value) for name, text, value in counters]
    registry = CollectorRegistry()
    registry.register(_Families(families))
    return generate_latest(registry)
