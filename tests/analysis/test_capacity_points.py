"""Points of the capacity experiment, from records whose numbers are known."""

import pandas as pd
import pytest

from analysis.capacity.points import ClosedPoint, closed_point, highest_slo_rate, knee, open_point
from analysis.frames import derive
from bellman.slo import Slo


def requests(rows):
    """Rows of (intended, sent, first token, last token, status)."""
    names = ["intended_s", "sent_s", "first_token_s", "last_token_s", "status"]
    frame = pd.DataFrame(rows, columns=names)
    return derive(frame.assign(output_tokens=11, chunk_gaps_s=None, ended_s=frame["last_token_s"]))


def closed(clients, throughput_rps):
    return ClosedPoint("none", clients, 100.0, 100, throughput_rps, None, None)


def test_littles_law_is_checked_with_three_separate_measurements():
    # Two clients, each with a request of 4 s after another, over a window of 40 s.
    rows = [(t, t, t + 1, t + 4, "ok") for start in (0, 2) for t in range(start, 60, 4)]
    timeline = pd.DataFrame({"time_s": range(60), "running": 2, "waiting": 0})
    point = closed_point("none", 2, requests=requests(rows), timeline=timeline, window=(10, 50))
    assert point.throughput_rps == 0.5
    assert point.latency_s == 4.0
    assert point.outstanding == 2.0
    assert point.littles_error == 0.0


def test_the_edges_of_a_finite_window_are_no_error():
    # One client's answers get slower and slower: the one that is out at the end is older.
    rows, timeline = [], pd.DataFrame({"time_s": range(40), "running": 2, "waiting": 0})
    for client in range(2):
        start = 0.0
        for length in (1, 2, 3, 5, 9, 15, 40) if client else [1.0] * 60:
            rows.append((start, start, start + 0.5, start + length, "ok"))
            start += length
    point = closed_point("none", 2, requests=requests(rows), timeline=timeline, window=(0, 40))
    assert point.throughput_rps * point.latency_s < 1.95
    assert point.edge_requests > 0.05
    assert point.littles_error == pytest.approx(0.0, abs=1e-9)


def test_littles_law_fails_when_the_server_holds_requests_that_nobody_waits_for():
    rows = [(t, t, t + 1, t + 4, "ok") for t in range(0, 60, 4)]
    timeline = pd.DataFrame({"time_s": range(60), "running": 1, "waiting": 1})
    point = closed_point("none", 1, requests=requests(rows), timeline=timeline, window=(10, 50))
    assert point.littles_error == pytest.approx(1.0)


def test_a_server_that_reports_nothing_leaves_littles_law_open():
    rows = [(t, t, t + 1, t + 4, "ok") for t in range(0, 60, 4)]
    timeline = pd.DataFrame({"time_s": range(60), "running": None, "waiting": None})
    point = closed_point("none", 1, requests=requests(rows), timeline=timeline, window=(10, 50))
    assert point.outstanding is None
    assert point.littles_error is None


def test_an_open_point_counts_every_intended_request():
    rows = [
        (10.0, 10.0, 11.0, 12.0, "ok"),  # good
        (11.0, 14.0, 15.0, 16.0, "ok"),  # waited 3 s at the client: its first token is too late
        (12.0, 12.0, None, None, "error"),
        (13.0, None, None, None, "unfinished"),
        (5.0, 5.0, 6.0, 7.0, "ok"),  # before the window
    ]
    point = open_point(
        "none", 0.4, requests=requests(rows), window=(10.0, 20.0), slo=Slo(2.0, 0.2, 10.0)
    )
    assert point.offered_rps == 0.4
    assert point.achieved_rps == pytest.approx(0.3)
    assert point.slo_attainment == 0.25
    assert point.goodput_rps == pytest.approx(0.1)
    assert point.e2e_mean_s == pytest.approx(3.5)
    assert point.service_mean_s == pytest.approx(2.0)
    assert point.e2e_p50_s == 5.0
    assert point.e2e_p99_s == float("inf")
    assert point.lost_share == 0.5


def test_the_knee_is_the_fewest_clients_near_the_highest_throughput():
    points = [closed(1, 1.0), closed(2, 1.9), closed(4, 3.85), closed(8, 4.0), closed(16, 3.9)]
    assert knee(points).clients == 4


def test_a_good_rate_above_a_bad_one_does_not_count():
    def point(rate_rps, share):
        answers = [(10.0 + i, 10.0 + i, 11.0 + i, 12.0 + i, "ok") for i in range(10)]
        answers = [
            (*row[:4], "ok" if index < 10 * share else "error") for index, row in enumerate(answers)
        ]
        return open_point(
            "none", rate_rps, requests=requests(answers), window=(10, 20), slo=Slo(2.0, 0.2, 10.0)
        )

    points = [point(3.0, 1.0), point(1.0, 1.0), point(2.0, 0.9), point(1.5, 1.0)]
    assert highest_slo_rate(points, 0.95) == 1.5
    assert highest_slo_rate([point(1.0, 0.5)], 0.95) is None
