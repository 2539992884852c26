import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import metrics
from analysis.frames import derive
from analysis.goodput import judge
from bellman.slo import Slo


def requests(*rows: dict) -> pd.DataFrame:
    """Requests with times in s; what a row leaves out is null."""
    names = ["intended_s", "sent_s", "first_token_s", "last_token_s", "output_tokens"]
    columns = [*names, "status", "chunk_gaps_s", "attempts"]
    frame = pd.DataFrame([{"status": "ok"} | row for row in rows], columns=columns)
    return derive(frame.astype(dict.fromkeys(names, float)))


def test_a_request_by_hand():
    frame = requests(
        {
            "intended_s": 10,
            "sent_s": 10.5,
            "first_token_s": 11,
            "last_token_s": 13,
            "output_tokens": 5,
        },
        {
            "intended_s": 20,
            "sent_s": 20,
            "first_token_s": 21,
            "last_token_s": 21,
            "output_tokens": 1,
        },
    )
    first, second = frame.iloc[0], frame.iloc[1]
    assert (first.e2e_s, first.service_latency_s, first.client_wait_s) == (3.0, 2.5, 0.5)
    assert (first.ttft_s, first.tpot_s) == (1.0, 0.5)
    assert second.e2e_s == 1.0 and math.isnan(second.tpot_s)


def test_failures_are_infinite_in_percentiles_and_absent_from_means():
    rows = [{"intended_s": i, "sent_s": i, "last_token_s": i + 0.1} for i in range(9)]
    frame = requests(*rows, {"intended_s": 9, "sent_s": 9, "status": "error"})
    assert metrics.latency_percentile(frame, "e2e_s", 90) == pytest.approx(0.1)
    assert metrics.latency_percentile(frame, "e2e_s", 95) == math.inf
    assert metrics.latency_mean(frame, "e2e_s") == pytest.approx(0.1)
    assert metrics.lost_share(frame) == pytest.approx(0.1)


def test_what_became_of_the_requests_by_hand():
    times = {"intended_s": 0, "sent_s": 0}
    frame = requests(
        times | {"last_token_s": 3, "attempts": 1},
        times | {"last_token_s": 5, "attempts": 3},
        times | {"status": "rejected"},
        times | {"status": "rejected", "attempts": 2},
        times | {"status": "timeout"},
        {"intended_s": 0, "status": "unfinished"},
    )
    assert metrics.offered(frame) == 6
    assert metrics.admitted(frame) == 3  # two answered and one that came too late
    assert metrics.rejected(frame) == 2  # and one never left
    assert metrics.retried(frame) == 2
    assert metrics.completed(frame) == 2
    assert metrics.latency_mean(frame, "e2e_s") == 4.0
    assert metrics.latency_mean_of_all(frame, "e2e_s") == math.inf
    assert metrics.latency_mean_of_all(frame[:2], "e2e_s") == 4.0
    assert metrics.latency_mean_of_all(frame[:0], "e2e_s") is None
    assert metrics.latency_percentiles_of_ok(frame, "e2e_s", (50, 99)) == [3.0, 5.0]
    assert metrics.latency_percentiles(frame, "e2e_s", (16, 50)) == [3.0, math.inf]


SENT = st.tuples(st.floats(0, 60), st.sampled_from(["ok", "rejected", "error", "timeout"]))


@settings(deadline=None, max_examples=25)
@given(st.lists(SENT, min_size=1, max_size=25), st.sets(st.integers(0, 24)))
def test_no_arm_wins_by_refusing(sent, refused):
    """Whatever an arm refuses, neither its good share nor its percentiles get better."""

    def frame(turned_away):
        return requests(
            *(
                {"intended_s": 0, "sent_s": 0, "status": "rejected"}
                if number in turned_away
                else {"intended_s": 0, "sent_s": 0, "last_token_s": end_s, "status": status}
                for number, (end_s, status) in enumerate(sent)
            )
        )

    served, refusing = frame(set()), frame(refused)
    for one in (served, refusing):
        assert metrics.offered(one) == metrics.admitted(one) + metrics.rejected(one)
        assert metrics.completed(one) <= metrics.admitted(one)
    slo = Slo(ttft_s=None, tpot_s=None, e2e_s=20.0)
    assert judge(refusing, slo).fraction <= judge(served, slo).fraction
    for percent in (10, 50, 99):
        before, after = (
            metrics.latency_percentile(one, "e2e_s", percent) for one in (served, refusing)
        )
        assert after >= before
    assert metrics.latency_mean_of_all(refusing, "e2e_s") >= metrics.latency_mean_of_all(
        served, "e2e_s"
    ) or metrics.completed(refusing) == len(sent)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.floats(0, 1e6) | st.just(math.inf), min_size=1, max_size=60),
    st.sampled_from([0.1, 1, 5, 50, 90, 99, 99.9, 100]),
)
def test_percentile_is_the_smallest_value_with_enough_at_or_below(values, percent):
    array = np.array(values)
    found = metrics.percentile(array, percent)
    assert found in values
    assert np.mean(array <= found) * 100 >= percent - 1e-9
    smaller = array[array < found]
    assert len(smaller) == 0 or np.mean(array <= smaller.max()) * 100 < percent


def test_percentile_ranks_in_whole_numbers():
    assert metrics.percentile(np.arange(1.0, 101.0), 7) == 7.0  # 0.07 x 100 is 7.000000000000001
    assert metrics.percentile(np.empty(0), 50) is None


def test_rates_and_windows():
    frame = requests(
        {"intended_s": 1, "sent_s": 1, "last_token_s": 4},
        {"intended_s": 2, "sent_s": 2, "last_token_s": 5},
        {"intended_s": 3, "sent_s": 3.5, "status": "timeout"},
        {"intended_s": 4, "status": "unfinished"},
    )
    assert metrics.offered_rate(frame, 5.0) == 0.8
    assert metrics.achieved_rate(frame, 5.0) == 0.6
    assert metrics.throughput(frame, 0.0, 5.0) == 0.2  # the end is open: 5 s is the next window's
    assert metrics.throughput(frame, 5.0, 10.0) == 0.2
    assert metrics.lag_percentile(frame, 99) == 0.5


def test_nothing_measured_is_none_and_not_zero():
    frame = requests({"intended_s": 1, "status": "error"})
    assert metrics.latency_mean(frame, "e2e_s") is None
    assert metrics.lag_percentile(frame, 50) is None
    assert metrics.total(frame, "output_tokens") is None
    assert metrics.per(None, 3) is None and metrics.per(3.0, 0) is None
    assert metrics.latency_percentile(frame, "e2e_s", 50) == math.inf


def test_generated_tokens_are_interpolated_at_the_window_ends():
    ticks = pd.DataFrame({"time_s": [0.0, 1.0, 2.0], "generated_tokens_total": [0, 10, 40]})
    assert metrics.counted(ticks, "generated_tokens_total", 0.5, 1.5) == pytest.approx(20.0)
    assert metrics.counted(ticks, "generated_tokens_total", 1.0, math.inf) == pytest.approx(30.0)
    assert metrics.counted(ticks, "generated_tokens_total", 0.0, 0.5) == pytest.approx(5.0)
    unknown = ticks.assign(generated_tokens_total=[None, None, None])
    assert metrics.counted(unknown, "generated_tokens_total", 0.0, 1.0) is None


def test_gaps_of_all_streams_count_together():
    frame = requests(
        {"chunk_gaps_s": [0.1, 0.3, 0.1]},
        {"chunk_gaps_s": []},
        {"chunk_gaps_s": [0.2]},
        {"chunk_gaps_s": [9.0], "status": "error"},  # an answer that nobody got
        {},  # no stream at all
    )
    assert list(frame["longest_gap_s"].fillna(-1)) == [0.3, -1, 0.2, 9.0, -1]
    assert metrics.chunk_gap_percentiles(frame, (50, 75, 99)) == [0.1, 0.2, 0.3]
    assert metrics.chunk_gap_percentiles(frame[4:], (50, 99)) == [None, None]


OK = {"intended_s": 0.0, "sent_s": 0.0, "first_token_s": 1.0, "last_token_s": 2.0}


def test_what_is_unknown_of_some_requests_is_not_the_mean_of_the_others():
    frame = requests(OK | {"output_tokens": 11}, OK, {"intended_s": 0.0, "status": "error"})
    assert metrics.latency_mean(frame, "tpot_s") is None
    assert metrics.latency_percentile(frame, "tpot_s", 50) is None
    assert metrics.total(frame, "output_tokens") is None
    assert metrics.mean(frame, "output_tokens") is None
    assert metrics.latency_mean(frame, "e2e_s") == 2.0  # another quantity, known of all
    assert metrics.latency_mean(frame[:1], "tpot_s") == pytest.approx(0.1)


def test_an_answer_of_one_token_has_no_tpot_to_be_unknown():
    one = OK | {"output_tokens": 1, "last_token_s": 1.0}
    frame = requests(OK | {"output_tokens": 11}, one)
    assert metrics.latency_mean(frame, "tpot_s") == pytest.approx(0.1)
    assert metrics.latency_percentile(frame, "tpot_s", 99) == pytest.approx(0.1)
    assert metrics.total(frame, "output_tokens") == 12
    assert metrics.latency_mean(frame[1:], "tpot_s") is None


def test_a_counter_that_stops_is_not_extended():
    ticks = pd.DataFrame({"time_s": [0.0, 1.0, 2.0], "generated_tokens_total": [0, 10, None]})
    assert metrics.counted(ticks, "generated_tokens_total", 0.0, 1.0) == pytest.approx(10.0)
    assert metrics.counted(ticks, "generated_tokens_total", 0.0, 1.5) is None
    assert metrics.counted(ticks, "generated_tokens_total", 0.0, math.inf) is None
