"""Short whole runs of the arms that refuse, retry and route, in virtual time: nothing gets lost."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.app.served import lines, record

TIMES_S = [0.0] * 5 + [number / 20 for number in range(400)]
LIMIT = "admission.limit=50"
SMALL = {
    "queue_limit": [LIMIT],
    "shed": ["admission.good_s=5.0"],
    "gradient_limit": ["admission.smallest_limit=8", "admission.measured_requests=10"],
    "tpm": ["admission.tokens=400000"],
    "tpm_retry": ["admission.tokens=400000", "client.attempts=9"],
    "breaker": ["admission.admission.limit=50", "admission.least_requests=5"],
    "spillover": ["admission.limit=120"],
    "bellman_tpm": ["admission.tokens=400000"],
    "bellman_spillover": ["admission.limit=120"],
}
"""What makes each arm do something about four hundred requests in twenty seconds."""
NONE_REFUSED = {"tpm_retry", "spillover", "bellman_spillover"}


def serve(folder: Path, arm: str, *overrides: str) -> list[dict[str, Any]]:
    own = [f"arms.{arm}.{entry}" for entry in SMALL[arm]]
    return record(folder, TIMES_S, [f"arm=[none,{arm}]", *own, *overrides], arm)


def check_attempts(folder: Path, requests: list[dict[str, Any]]) -> None:
    """Attempts are numbered, follow one another, and the last is what became of the request."""
    attempts: dict[int, list[dict[str, Any]]] = {}
    for attempt in lines(folder, "attempts"):
        attempts.setdefault(attempt["request_id"], []).append(attempt)
    for request in requests:
        own = attempts.pop(request["request_id"], [])
        assert request["attempts"] == len(own)
        assert [one["attempt"] for one in own] == list(range(1, len(own) + 1))
        if own:
            assert own[0]["sent_s"] == request["sent_s"]
            assert own[-1]["status"] == request["status"]
            assert own[-1]["replica"] == request["replica"]
        for one, following in pairwise(own):
            assert one["status"] == "rejected" and one["http_status"] in (429, 503)
            assert following["sent_s"] >= one["ended_s"] + (one["retry_after_s"] or 0)
    assert not attempts


@pytest.mark.parametrize("arm", SMALL)
def test_every_request_is_accounted_for(arm, tmp_path):
    requests = serve(tmp_path / "run", arm)
    assert sorted(line["request_id"] for line in requests) == list(range(len(TIMES_S)))
    statuses = Counter(line["status"] for line in requests)
    assert statuses["ok"] + statuses["rejected"] == len(TIMES_S)
    assert (statuses["rejected"] == 0) == (arm in NONE_REFUSED)
    if arm in NONE_REFUSED:
        assert max(line["attempts"] for line in requests) > 1
        check_attempts(tmp_path / "run", requests)
    else:
        assert all(line["attempts"] is line["replica"] is None for line in requests)
        assert not (tmp_path / "run" / "attempts.jsonl").exists()


@pytest.mark.parametrize("arm", ["tpm_retry", "spillover"])
def test_what_a_run_cuts_short_leaves_all_its_attempts(arm, tmp_path):
    requests = serve(tmp_path / "run", arm, "drain_s=1")
    assert sorted(line["request_id"] for line in requests) == list(range(len(TIMES_S)))
    statuses = Counter(line["status"] for line in requests)
    check_attempts(tmp_path / "run", requests)
    # Those that waited to be sent again were refused, and say so.
    assert statuses["rejected" if arm == "tpm_retry" else "unfinished"] > 0


def test_waits_are_part_of_the_latency_and_end_with_the_deadline(tmp_path):
    requests = serve(tmp_path / "run", "tpm_retry", "request_timeout_s=62")
    again = [line for line in requests if line["status"] == "ok" and line["attempts"] > 1]
    assert again
    for line in again:
        # Refused at its arrival, it was let in when the first minute was over.
        assert line["sent_s"] == pytest.approx(line["intended_s"])
        assert line["first_token_s"] > 60
    refused = [line for line in requests if line["status"] == "rejected"]
    assert refused
    for line in refused:
        assert line["ended_s"] - line["sent_s"] <= 62


def test_a_request_is_written_anew_when_it_is_sent_again(tmp_path):
    """The level that it acted on is that of its last attempt."""
    law = ["arms.bellman.controller.q_low=0", "arms.bellman.controller.q_high=20"]
    admission = ["admission@arms.bellman.admission=queue_limit", "arms.bellman.admission.limit=30"]
    client = ["+client@arms.bellman.client=retry", "arms.bellman.client.first_wait_s=4"]
    requests = record(tmp_path / "run", TIMES_S, [*law, *admission, *client])
    check_attempts(tmp_path / "run", requests)
    again = [line for line in requests if line["attempts"] > 1 and line["status"] == "ok"]
    assert len(again) > 20
    assert all(line["level"] is not None for line in again)
    at_first = [line for line in again if line["intended_s"] == 0.0]
    assert at_first or min(line["level"] for line in again) < 1.0


def test_clients_in_a_circle_that_are_refused_pause(tmp_path):
    """Eight clients and room for five: in virtual time they would else ask without end at 0 s."""
    arm = ["arm=[none,queue_limit]", "arms.queue_limit.admission.limit=5"]
    loop = ["load_model=closed", "load_model.clients=8"]
    requests = record(tmp_path / "run", [0.0, 9.0], [*arm, *loop], "queue_limit")
    statuses = Counter(line["status"] for line in requests)
    assert set(statuses) == {"ok", "rejected"}
    assert 3 <= statuses["rejected"] <= 3 * 11
