"""The names of three servers, read from text and from this process's registry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, Counter, Gauge

from bellman.serving.metrics import Reported, parse_metrics, registry_reader

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 5.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 5.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:prompt_tokens_total{engine="0",model_name="m"} 1.5e+06
vllm:prompt_tokens_cached_total{engine="0",model_name="m"} 9
vllm:generation_tokens_total{engine="0",model_name="m"} 1234.0
vllm:generation_tokens_created{engine="0",model_name="m"} 1.76e+09
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 10.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 20.0
vllm:e2e_request_latency_seconds_bucket{engine="0",le="0.3",model_name="m"} 1.0
"""
OLD_VLLM = 'vllm:num_requests_running{model_name="m"} 1\nvllm:gpu_cache_usage_perc{a="b"} 0.5\n'
SGLANG = """\
sglang:num_running_reqs{model_name="m"} 8.0
sglang:num_queue_reqs{model_name="m"} 2.0
sglang:token_usage{model_name="m"} 0.28
sglang:prompt_tokens_total{model_name="m"} 8.0e+06
sglang:generation_tokens_total{model_name="m"} 7.5e+06
"""
TGI = """\
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 6
# TYPE tgi_queue_size gauge
tgi_queue_size 9
# TYPE tgi_request_success counter
tgi_request_success 41
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_bucket{le="1"} 1
tgi_request_generated_tokens_sum 500
tgi_request_generated_tokens_count 41
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (VLLM, Reported(7, 5, 0.5, 1_500_000, 1234, 2, 30)),
        (OLD_VLLM, Reported(running=1, kv_usage=0.5)),
        (SGLANG, Reported(8, 2, 0.28, 8_000_000, 7_500_000)),
        (TGI, Reported(running=6, waiting=9, generated_tokens_total=500, completed_total=41)),
        ("", Reported()),
        ("<html>no metrics</html>", Reported()),
    ],
)
def test_names_of_servers(text: str, expected: Reported) -> None:
    assert parse_metrics(text) == expected


@given(st.text())
def test_other_text_reports_nothing(text: str) -> None:
    assert parse_metrics(text) == Reported()


def test_the_registry_of_this_process() -> None:
    read = registry_reader()
    before = read()
    waiting = Gauge("vllm:num_requests_waiting", "w", ["engine"])
    tokens = Counter("vllm:generation_tokens", "t", ["engine"])
    try:
        waiting.labels("0").set(3)
        waiting.labels("1").set(4)
        tokens.labels("0").inc(100)
        assert before == Reported()
        assert read() == Reported(waiting=7, generated_tokens_total=100)
    finally:
        REGISTRY.unregister(waiting)
        REGISTRY.unregister(tokens)
