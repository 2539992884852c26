"""The searches of the capacity study, with episodes whose latencies are a formula."""

import json

import pytest

from bellman.errors import RunError
from bellman.load.arrivals.closed_test import ClosedTest
from bellman.records import REQUESTS, TIMELINE
from bellman.settings import read_settings
from experiments.perform import Outcome, planned
from tests.experiments.conftest import read_config

SMALL = (
    "experiment=capacity",
    "arm=[none,bellman]",
    "study.loads=[0.5,1.2]",
    "study.slo_scales=[1.0,2.0]",
    "study.resolution=0.05",
    "study.clients_limit=16",
    "study.closed_lifetimes=1",
    "slo={ttft_s: null, tpot_s: null, e2e_s: 10.0}",
)
PLACES = 4
"""Of a server that takes four seconds for an answer: a request a second when it is full."""


def settings(*overrides: str):
    return read_settings(read_config(*SMALL, *overrides))


def rows_of(cell):
    """Closed: every place gives an answer in 4 s. Open: at r a second each answer takes 10 r s."""
    if cell.axes["step"] == "open":
        return [(float(second), second + 10.0 * cell.axes["rate_rps"]) for second in range(100)]
    taken = min(cell.axes["clients"], PLACES)
    ends_s = [4.0 * (1 + number // taken) for number in range(100 * taken)]
    return [(end_s - 4.0 * cell.axes["clients"] / taken, end_s) for end_s in ends_s]


class Formula:
    """Answers what a study asks for; writes each episode's records as an executor would."""

    def __init__(self, folder, fails=lambda cell: False):
        self.folder = folder
        self.fails = fails
        self.batches = []
        self.rows_of = rows_of

    @property
    def asked(self):
        return [cell for batch in self.batches for cell in batch]

    def run(self, settings):
        search = settings.study.cells(settings)
        batch = next(search)
        while True:
            self.batches.append(batch)
            try:
                batch = search.send([self.outcome(cell) for cell in batch])
            except StopIteration:
                return self

    def outcome(self, cell):
        plan = planned(cell)
        folder = self.folder / plan.key
        if self.fails(cell):
            return Outcome(plan, folder, None, "it fell over")
        folder.mkdir(parents=True, exist_ok=True)
        empty = dict.fromkeys(REQUESTS.names)
        requests = [
            empty
            | {"intended_s": at_s, "sent_s": at_s, "status": "ok", "output_tokens": 1}
            | {"first_token_s": end_s, "last_token_s": end_s, "ended_s": end_s}
            for at_s, end_s in self.rows_of(cell)
        ]
        ticks = [
            dict.fromkeys(TIMELINE.names) | {"time_s": float(second), "running": 1, "waiting": 0}
            for second in range(10)
        ]
        for name, rows in (("requests", requests), ("timeline", ticks)):
            (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        phases = [{"name": "congested", "start_s": 0.0, "end_s": 100.0, "rate_rps": 0.0}]
        return Outcome(plan, folder, {"phases": phases, "invalid_reasons": []})


def rates(found, arm):
    return [c.axes["rate_rps"] for c in found.asked if c.arm == arm and c.axes["step"] == "open"]


def clients(found, arm):
    return [c.axes["clients"] for c in found.asked if c.arm == arm and c.axes["step"] == "closed"]


def test_every_multiple_of_the_slo_gets_its_own_limit_and_no_rate_runs_twice(tmp_path):
    found = Formula(tmp_path).run(settings())
    for arm in ("none", "bellman"):
        assert clients(found, arm) == [1, 2, 4, 8]  # the places are full with four
        tried = rates(found, arm)
        assert len(set(tried)) == len(tried)
        assert tried[:2] == pytest.approx([0.5, 1.2])
        for limit_rps in (1.0, 2.0):  # 10 s and 20 s
            below = max(rate for rate in tried if rate <= limit_rps)
            above = min(rate for rate in tried if rate > limit_rps)
            assert above - below <= 0.05


def test_all_arms_are_searched_side_by_side(tmp_path):
    found = Formula(tmp_path).run(settings("arm=[none,bellman,threshold]"))
    arms = [[cell.arm for cell in batch] for batch in found.batches]
    assert arms[:4] == [["none", "bellman", "threshold"]] * 4
    assert arms[4] == ["none", "none", "bellman", "bellman", "threshold", "threshold"]
    assert len({planned(cell).key for cell in found.asked}) == len(found.asked)


@pytest.mark.slow
def test_the_same_study_asked_again_goes_the_same_way(tmp_path):
    first = Formula(tmp_path).run(settings())
    again = Formula(tmp_path).run(settings())
    keys = [[planned(cell).key for cell in batch] for batch in first.batches]
    assert [[planned(cell).key for cell in batch] for batch in again.batches] == keys


@pytest.mark.slow
def test_a_point_that_fails_ends_its_own_search_only(tmp_path):
    whole = Formula(tmp_path).run(settings())
    cut = Formula(
        tmp_path, lambda cell: cell.arm == "bellman" and cell.axes.get("clients") == 2
    ).run(settings())
    assert clients(cut, "bellman") == [1, 2]
    assert clients(cut, "none") == clients(whole, "none")
    assert rates(cut, "none") == rates(whole, "none")
    assert rates(cut, "bellman") == rates(whole, "bellman")
    cut = Formula(tmp_path, lambda cell: cell.arm == "bellman" and cell.axes["step"] == "open").run(
        settings()
    )
    assert len(rates(cut, "bellman")) == 2
    assert rates(cut, "none") == rates(whole, "none")


def test_a_search_that_cannot_go_on_lets_the_others_end(tmp_path):
    found = Formula(tmp_path)
    found.rows_of = lambda cell: [] if cell.arm == "none" else rows_of(cell)
    with pytest.raises(RunError, match=r"^study\.closed_deadline_s=3600: 1 clients under none"):
        found.run(settings())
    assert clients(found, "bellman") == [1, 2, 4, 8]
    assert set(clients(found, "none")) == {1}


def test_without_the_baselines_capacity_there_are_no_rates(tmp_path):
    cut = Formula(tmp_path, lambda cell: cell.arm == "none" and cell.axes["clients"] == 4)
    cut.run(settings())
    assert clients(cut, "none") == [1, 2, 4]
    assert clients(cut, "bellman") == [1, 2, 4, 8]
    assert rates(cut, "none") == rates(cut, "bellman") == []


def test_a_closed_loop_gets_documents_and_phases_but_no_times():
    arrivals = ClosedTest(warmup_s=10.0, duration_s=40.0, documents=7)
    schedule = arrivals.schedule(None, ["a", "b", "c"], seed=1, repeat=0)
    assert len(schedule.requests) == 7
    assert sorted(request.document_id for request in schedule.requests[:3]) == ["a", "b", "c"]
    phases = [(phase.name, phase.start_s, phase.end_s) for phase in schedule.phases]
    assert phases == [("warmup", 0.0, 10.0), ("congested", 10.0, 50.0)]
    assert schedule.end_s == 50.0
    assert schedule.digest == arrivals.schedule(None, ["a", "b", "c"], seed=1, repeat=0).digest
