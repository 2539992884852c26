"""What a server reports of its load in Prometheus metrics: vLLM, SGLang and TGI."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from bellman.sensing.failure import SensorFailed
from bellman.sensing.numbers import amount, count, share
from bellman.serving.ranks import Number, per_engine

NAMES: dict[str, tuple[str, ...]] = {
    "running": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "tgi_batch_current_size",
    ),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs", "tgi_queue_size"),
    # Older vLLM says gpu_cache_usage_perc; some versions say both.
    "kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
    "prompt_tokens_total": (
        "vllm:prompt_tokens_total",
        "sglang:prompt_tokens_total",
        "tgi_request_input_length_sum",
    ),
    "generated_tokens_total": (
        "vllm:generation_tokens_total",
        "sglang:generation_tokens_total",
        "tgi_request_generated_tokens_sum",
    ),
    "preemptions_total": ("vllm:num_preemptions_total",),
    "completed_total": (
        "vllm:request_success_total",
        "sglang:num_requests_total",
        "tgi_request_success",
    ),
    # Histograms: vLLM takes a request in when it is finished, its ttft with the first token.
    "queue_delay_sum_s": (
        "vllm:request_queue_time_seconds_sum",
        "sglang:queue_time_seconds_sum",
        "tgi_request_queue_duration_sum",
    ),
    "queue_delay_count": (
        "vllm:request_queue_time_seconds_count",
        "sglang:queue_time_seconds_count",
        "tgi_request_queue_duration_count",
    ),
    "ttft_sum_s": (
        "vllm:time_to_first_token_seconds_sum",
        "sglang:time_to_first_token_seconds_sum",
    ),
    "ttft_count": (
        "vllm:time_to_first_token_seconds_count",
        "sglang:time_to_first_token_seconds_count",
    ),
    "e2e_sum_s": (
        "vllm:e2e_request_latency_seconds_sum",
        "sglang:e2e_request_latency_seconds_sum",
        "tgi_request_duration_sum",
    ),
    "e2e_count": (
        "vllm:e2e_request_latency_seconds_count",
        "sglang:e2e_request_latency_seconds_count",
        "tgi_request_duration_count",
    ),
}
"""Sample names by quantity; the first name that a server exports counts."""
GAUGES = ("running", "waiting", "kv_usage")
SECONDS = ("queue_delay_sum_s", "ttft_sum_s", "e2e_sum_s")
ALL_NAMES = frozenset(name for names in NAMES.values() for name in names)
LONGEST_LINE = 16 * 2**10
"""Characters: what a line's parser needs grows with their square."""
MOST_SERIES = 10_000
"""More than any server has engines, ranks and finish reasons."""
MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""Set by vLLM when several API server processes share their metrics through files."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A server's own metrics, over all its engines; None for what it does not export."""

    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    """Share of KV cache in use, mean over the engines."""
    prompt_tokens_total: int | None = None
    generated_tokens_total: int | None = None
    preemptions_total: int | None = None
    completed_total: int | None = None
    queue_delay_sum_s: float | None = None
    queue_delay_count: int | None = None
    ttft_sum_s: float | None = None
    ttft_count: int | None = None
    e2e_sum_s: float | None = None
    e2e_count: int | None = None


def reported(families: Iterable[Metric]) -> Reported:
    """Pick the load out of metric families; raises `SensorFailed` for a number that is none."""
    samples: dict[str, list[Sample]] = {}
    for family in families:
        for sample in family.samples:
            if sample.name in ALL_NAMES:
                samples.setdefault(sample.name, []).append(sample)

    def total(quantity: str) -> float | None:
        check: Callable[[object], float] = amount if quantity in SECONDS else count
        values = of_engines(quantity, check)
        return sum(values) if values else None

    def of_engines(quantity: str, check: Callable[[object], Number]) -> list[Number]:
        name = next((name for name in NAMES[quantity] if name in samples), None)
        if name is None:
            return []
        try:
            return per_engine(samples[name], check, gauge=quantity in GAUGES)
        except ValueError as error:
            raise SensorFailed(f"{name}: {error}") from None

    kv_usage = of_engines("kv_usage", share)
    totals: dict[str, Any] = {name: total(name) for name in NAMES if name != "kv_usage"}
    return Reported(kv_usage=sum(kv_usage) / len(kv_usage) if kv_usage else None, **totals)


def parse_metrics(text: str) -> Reported:
    """Read the text of a `/metrics` endpoint; raises `SensorFailed` for what is none of it."""
    # A vLLM server exports thousands of histogram lines: only ours are worth parsing.
    lines = [line for line in text.split("\n") if line.startswith(tuple(ALL_NAMES))]
    if lines and not text.endswith("\n"):
        raise SensorFailed("the metrics end in the middle of a line")
    if len(lines) > MOST_SERIES:
        raise SensorFailed(f"{len(lines)} lines of metrics")
    for line in lines:
        if len(line) > LONGEST_LINE:
            raise SensorFailed(f"a line of metrics of {len(line)} characters")
        if not line.rpartition("}")[2].isascii():  # float() reads digits of every script
            raise SensorFailed(f"{line!r:.200} is no line of metrics")
    try:
        families = list(text_string_to_metric_families("\n".join([*lines, ""])))
    except Exception as error:  # the parser promises no kind
        raise SensorFailed(f"no text of metrics: {error!r:.200}") from None
    return reported(families)


def registry_reader() -> Callable[[], Reported]:
    """Return a function that reads the Prometheus registry of this process.

    vLLM sets its gauges there after every engine step, not at its log interval. With several API
    server processes (`--api-server-count`) the values of all are read from their shared files.
    """
    if MULTIPROCESS in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return lambda: reported(registry.collect())
    return lambda: reported(REGISTRY.restricted_registry(ALL_NAMES).collect())
