"""The names of three servers, read from text and from this process's registry."""

from collections import Counter as Tally
from dataclasses import asdict
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from bellman.sensing.failure import SensorFailed
from bellman.sensing.observation import Observation
from bellman.serving.metrics import Reported, parse_metrics, registry_reader
from bellman.serving.sensor import Sensor

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
VLLM_DELAYS = """\
# TYPE vllm:request_queue_time_seconds histogram
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3",model_name="m"} 1.0
vllm:request_queue_time_seconds_count{engine="0",model_name="m"} 2.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} 0.5
vllm:request_queue_time_seconds_count{engine="1",model_name="m"} 1.0
vllm:request_queue_time_seconds_sum{engine="1",model_name="m"} 0.25
vllm:request_queue_time_seconds_created{engine="0",model_name="m"} 1.76e+09
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 4.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 2.5
vllm:e2e_request_latency_seconds_count{engine="0",model_name="m"} 3.0
vllm:e2e_request_latency_seconds_sum{engine="0",model_name="m"} 61.5
"""
OLD_VLLM = 'vllm:num_requests_running{model_name="m"} 1\nvllm:gpu_cache_usage_perc{a="b"} 0.5\n'
SGLANG = """\
sglang:num_running_reqs{model_name="m"} 8.0
sglang:num_queue_reqs{model_name="m"} 2.0
sglang:token_usage{model_name="m"} 0.28
sglang:prompt_tokens_total{model_name="m"} 8.0e+06
sglang:generation_tokens_total{model_name="m"} 7.5e+06
"""
SGLANG_DELAYS = """\
sglang:time_to_first_token_seconds_count{model_name="m"} 2.0
sglang:time_to_first_token_seconds_sum{model_name="m"} 0.5
sglang:e2e_request_latency_seconds_count{model_name="m"} 2.0
sglang:e2e_request_latency_seconds_sum{model_name="m"} 9.0
"""
TGI_DELAYS = """\
# TYPE tgi_request_queue_duration histogram
tgi_request_queue_duration_sum 1.25
tgi_request_queue_duration_count 5
# TYPE tgi_request_duration histogram
tgi_request_duration_bucket{le="1"} 1
tgi_request_duration_sum 20.5
tgi_request_duration_count 5
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
        (VLLM + VLLM_DELAYS, Reported(7, 5, 0.5, 1_500_000, 1234, 2, 30, 0.75, 3, 2.5, 4, 61.5, 3)),
        (OLD_VLLM, Reported(running=1, kv_usage=0.5)),
        (SGLANG, Reported(8, 2, 0.28, 8_000_000, 7_500_000)),
        (VLLM.replace("1.5e+06", "3000000000"), Reported(7, 5, 0.5, 3 * 10**9, 1234, 2, 30)),
        (SGLANG_DELAYS, Reported(ttft_sum_s=0.5, ttft_count=2, e2e_sum_s=9.0, e2e_count=2)),
        (TGI, Reported(running=6, waiting=9, generated_tokens_total=500, completed_total=41)),
        (
            TGI_DELAYS,
            Reported(queue_delay_sum_s=1.25, queue_delay_count=5, e2e_sum_s=20.5, e2e_count=5),
        ),
        ("", Reported()),
        ("<html>no metrics</html>", Reported()),
    ],
)
def test_names_of_servers(text: str, expected: Reported) -> None:
    assert parse_metrics(text) == expected


@given(st.text())
def test_other_text_reports_nothing(text: str) -> None:
    assert parse_metrics(text) == Reported()


def test_a_line_without_end_is_refused_before_it_is_parsed() -> None:
    """Each is a label's or a line's parsing that takes a minute and more."""
    for labels in (",".join(f'a{n}="x"' for n in range(400_000)), 'a="' + '\\"' * 400_000 + '"'):
        text = f"vllm:num_requests_running{{{labels}}} 5\n"
        with pytest.raises(SensorFailed, match=r"a line of metrics of \d+ characters"):
            parse_metrics(text)


def test_the_registry_of_this_process() -> None:
    read = registry_reader()
    before = read()
    waiting = Gauge("vllm:num_requests_waiting", "w", ["engine"])
    tokens = Counter("vllm:generation_tokens", "t", ["engine"])
    latency = Histogram("vllm:e2e_request_latency_seconds", "e", ["engine"])
    try:
        waiting.labels("0").set(3)
        waiting.labels("1").set(4)
        tokens.labels("0").inc(100)
        latency.labels("0").observe(1.5)
        latency.labels("1").observe(2.0)
        assert before == Reported()
        assert read() == Reported(waiting=7, generated_tokens_total=100, e2e_sum_s=3.5, e2e_count=2)
    finally:
        REGISTRY.unregister(waiting)
        REGISTRY.unregister(tokens)
        REGISTRY.unregister(latency)


def test_what_repeats_is_counted_once_and_what_adds_up_is_added() -> None:
    """Labels as vLLM and SGLang write them; see `bellman.serving.ranks`."""
    data_parallel = """\
sglang:num_running_reqs{dp_rank="0",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 4
sglang:num_running_reqs{dp_rank="0",moe_ep_rank="1",pp_rank="0",tp_rank="1"} 4
sglang:num_running_reqs{dp_rank="1",moe_ep_rank="2",pp_rank="0",tp_rank="2"} 5
sglang:num_running_reqs{dp_rank="1",moe_ep_rank="3",pp_rank="1",tp_rank="3"} 5
sglang:num_queue_reqs{dp_rank="0",priority="",tp_rank="0"} 7
sglang:num_queue_reqs{dp_rank="0",priority="1",tp_rank="0"} 3
sglang:num_queue_reqs{dp_rank="0",priority="2",tp_rank="0"} 4
sglang:token_usage{dp_rank="0",tp_rank="0"} 0.5
sglang:token_usage{dp_rank="0",tp_rank="1"} 0.5
sglang:token_usage{dp_rank="1",tp_rank="2"} 1.0
"""
    assert parse_metrics(data_parallel) == Reported(9, 7, 0.75)
    processes = """\
vllm:num_requests_running{engine="0",pid="271"} 3
vllm:num_requests_running{engine="0",pid="272"} 8
vllm:num_requests_running{engine="1",pid="271"} 2
vllm:num_requests_waiting{engine="0"} 1
vllm:num_requests_waiting{engine="0"} 1
vllm:kv_cache_usage_perc{engine="0",pid="271"} 0.0
vllm:kv_cache_usage_perc{engine="0",pid="272"} 0.6
vllm:kv_cache_usage_perc{engine="1",pid="271"} 0.2
vllm:generation_tokens_total{engine="0",pid="271"} 3e+09
vllm:generation_tokens_total{engine="0",pid="272"} 4e+09
"""
    assert parse_metrics(processes) == Reported(10, 1, 0.4, generated_tokens_total=7_000_000_000)


def test_the_older_of_two_names_does_not_add_up() -> None:
    both = 'vllm:kv_cache_usage_perc{e="0"} 0.5\nvllm:gpu_cache_usage_perc{e="0"} 0.5\n'
    assert parse_metrics(both).kv_usage == 0.5


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2**53)), max_size=12)
)
def test_a_total_is_at_least_every_engine_and_at_most_all_samples(
    samples: list[tuple[int, int, int]],
) -> None:
    lines = [
        f'vllm:num_requests_running{{engine="{engine}",pid="{pid}"}} {value}\n'
        for engine, pid, value in samples
    ]
    values = [value for _, _, value in samples]
    running = parse_metrics("".join(lines)).running
    assert (running is None) == (not samples)
    if running is not None:
        assert max(values) <= running <= sum(values)
        assert running == parse_metrics("".join(reversed(lines + lines))).running


VALUES = (
    *("1e300", "-1e300", "1e400", "+Inf", "-Inf", "NaN", "nan", "inf", "-0", "-0.0", "0x1", "1_0"),
    *("3e9", "3.0e+09", "9007199254740993", "1" * 400, "-1", "2.5", "1e-320", "", " ", "\u0665"),
    *("1 2", "1 2 3", "1 -5", "1e", "e1", ".", "5.", ".5", "\x00", "1\n2", "# 1", "{}", "True"),
)
NOISE = (*'{}"=,\\ \t\n\r\x0b\x1c\x00\u2028\u00e9\ufeff0123456789.eE+-_#', "NaN", "Inf", "\udce9")


def mutate(random: Random, text: str) -> str:
    """Damage an exposition: odd values, odd characters, lines gone, doubled, joined or cut."""
    lines = text.splitlines(keepends=True)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(lines))
        kind = random.randrange(6)
        if kind == 0:
            lines[at] = lines[at].rpartition(" ")[0] + " " + random.choice(VALUES) + "\n"
        elif kind == 1:
            cut = random.randrange(len(lines[at]))
            lines[at] = lines[at][:cut] + random.choice(NOISE) + lines[at][cut + 1 :]
        elif kind == 2:
            lines[at] = lines[at][: random.randrange(len(lines[at]))] or "\n"
        elif kind == 3:
            lines.insert(at, random.choice(lines))
        elif kind == 4:
            lines[at] = lines[at].replace('"', random.choice(("'", "", '\\"', '""')), 1)
        else:
            lines[at] = lines[at].replace("_", random.choice(("", "__", ":")), 1) or "\n"
    return "".join(lines)


async def test_thousands_of_damaged_texts_are_observed_or_refused_by_name() -> None:
    random = Random(5)
    outcomes = Tally[str]()
    for number in range(4_000):
        text = mutate(random, VLLM + VLLM_DELAYS)
        sensor = Sensor(partial(parse_metrics, text), shared=bool(number % 2))
        for _ in range(number % 7):
            sensor.enter()
        try:
            observation = sensor.sense()
        except SensorFailed as failure:
            outcomes["refused"] += 1
            assert 0 < len(str(failure)) < 500 and "\n" not in str(failure), repr(text)
        else:
            outcomes["observed"] += 1
            valid(observation)
    assert min(outcomes["refused"], outcomes["observed"]) > 400


def valid(observation: Observation) -> None:
    """Check what a law may rely on."""
    for name, value in asdict(observation).items():
        if name == "time_s" or value is None:
            continue
        assert type(value) is (float if name == "kv_usage" or name.endswith("_s") else int)
        assert 0 <= value <= (1 if name == "kv_usage" else 2**56)
