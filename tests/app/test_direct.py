"""What enters the simulated engine without a task is recorded as what has one, to the byte."""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import pytest

from bellman.admission.base import Arrival, Permit
from bellman.engines.base import EngineDied
from bellman.engines.simulated.scheduler import Scheduler
from bellman.schema import schema
from bellman.sensing.observation import Observation
from tests.app.served import record

TASKS = ("load_model=capped", "load_model.concurrency=100000")
"""The open loop in effect, but by the path of real engines."""


AT_ONCE = [0.0] * 5 + [number / 40 for number in range(200)]
CASES = {
    "answered": ((), {"ok"}),
    "timeouts": (("request_timeout_s=4.5",), {"ok", "timeout"}),
    "cut off": (("drain_s=3",), {"ok", "unfinished"}),
    "refused": (
        (
            "arms.bellman.admission._target_=bellman.admission.queue_limit.QueueLimit",
            "+arms.bellman.admission.limit=50",
        ),
        {"ok", "rejected"},
    ),
    "refused by latency": (
        ("admission@arms.bellman.admission=gradient_limit",),
        {"ok", "rejected"},
    ),
    "too long": (("engine.max_model_len=1500",), {"ok", "error"}),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_recorded_as_if_each_request_had_a_task(case, tmp_path):
    overrides, statuses = CASES[case]
    directly = record(tmp_path / "directly", AT_ONCE, overrides)
    by_tasks = record(tmp_path / "tasks", AT_ONCE, (*overrides, *TASKS))
    assert {line["status"] for line in directly} == statuses
    if case == "cut off":  # in a task group's own order
        for lines in (directly, by_tasks):
            lines.sort(key=lambda line: line["request_id"])
    assert directly == by_tasks
    for line in directly:
        if line["status"] == "timeout":
            assert line["ended_s"] - line["sent_s"] == pytest.approx(4.5, abs=2e-6)


@schema
class Counted:
    """Lets all in, and takes down how they end."""

    outcomes: ClassVar[Counter[str]] = Counter()
    out: ClassVar[set[int]] = set()
    numbers: ClassVar[Iterator[int]] = itertools.count()

    def open(self) -> "Counted":
        self.outcomes.clear()
        self.out.clear()
        return self

    def acquire(self, arrival: Arrival, observation: Observation, now_s: float) -> Permit:
        number = next(self.numbers)
        self.out.add(number)

        def done(outcome: str, now_s: float) -> None:
            self.out.remove(number)  # only once
            self.outcomes[outcome] += 1

        return Permit(done)


COUNTED = ("arms.bellman.admission._target_=tests.app.test_direct.Counted",)
OUTCOMES = {"ok": "ok", "error": "error", "timeout": "left", "unfinished": "left"}


@pytest.mark.parametrize("path", [(), TASKS], ids=["directly", "by tasks"])
@pytest.mark.parametrize("case", ["answered", "timeouts", "cut off", "too long"])
def test_the_door_hears_once_how_each_request_ended(case, path, tmp_path):
    lines = record(tmp_path / "run", AT_ONCE, (*CASES[case][0], *COUNTED, *path))
    assert not Counted.out
    assert Counted.outcomes == Counter(OUTCOMES[line["status"]] for line in lines)


def test_the_death_of_the_engine_ends_the_episode_with_every_request_recorded(
    tmp_path, monkeypatch
):
    advance = Scheduler.advance

    def break_down(self: Scheduler, time_s: float) -> None:
        if asyncio.get_running_loop().time() > 2.0:
            raise ZeroDivisionError
        advance(self, time_s)

    monkeypatch.setattr(Scheduler, "advance", break_down)
    with pytest.raises((EngineDied, ZeroDivisionError)):
        record(tmp_path / "run", AT_ONCE, ())
    lines = (tmp_path / "run" / "requests.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["request_id"] for line in lines) == list(range(len(AT_ONCE)))


def test_a_disk_that_is_full_ends_the_episode(tmp_path, monkeypatch):
    written = []

    def write(_: object, record: object) -> None:
        written.append(record)
        if len(written) > 10:
            raise OSError("no space left on device")

    monkeypatch.setattr("bellman.records.JsonLinesWriter.write", write)
    with pytest.raises(OSError, match="no space left"):
        record(tmp_path / "run", AT_ONCE, ())
