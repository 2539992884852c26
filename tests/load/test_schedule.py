"""Schedules: drawn once, the same for every arm, evenly over the corpus."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from omegaconf import OmegaConf

from bellman.build import build
from bellman.errors import ConfigError, RunError
from bellman.load.arrivals.phases import Phases
from bellman.load.schedule import CONGESTED, SCHEDULE, Phase, Schedule, ScheduledRequest

CONF = Path(__file__).parents[2] / "conf" / "arrivals"
DOCUMENTS = [f"d{i}" for i in range(37)]


def phases(**changes) -> Phases:
    node = OmegaConf.merge(OmegaConf.load(CONF / "phases.yaml"), changes)
    return build(node, "arrivals")


def test_the_default_is_calm_congested_recovery_at_the_papers_overload():
    schedule = phases().schedule(10.0, DOCUMENTS, seed=1, repeat=0)
    assert [(p.name, p.start_s, p.end_s, p.rate_rps) for p in schedule.phases] == [
        ("warmup", 0, 30, 5.0),
        ("calm", 30, 90, 5.0),
        ("congested", 90, 390, pytest.approx(11.9)),
        ("recovery", 390, 510, 5.0),
    ]
    assert schedule.end_s == 510
    counts = Counter(request.phase for request in schedule.requests)
    assert counts["congested"] == pytest.approx(3570, abs=4 * 3570**0.5)
    for request in schedule.requests:
        phase = next(p for p in schedule.phases if p.name == request.phase)
        assert phase.start_s <= request.intended_s < phase.end_s


def test_the_same_seed_gives_the_same_schedule_and_another_seed_or_repeat_does_not():
    def digest(seed, repeat):
        return phases().schedule(3.0, DOCUMENTS, seed=seed, repeat=repeat).digest

    assert digest(1, 0) == digest(1, 0)
    assert len({digest(1, 0), digest(1, 1), digest(2, 0), digest(0, 1)}) == 4


def test_documents_come_evenly_and_in_the_same_order_for_any_process():
    poisson = phases().schedule(5.0, DOCUMENTS, seed=4, repeat=2)
    constant = phases(process="constant").schedule(5.0, DOCUMENTS, seed=4, repeat=2)
    counts = Counter(request.document_id for request in poisson.requests)
    assert max(counts.values()) - min(counts.values()) <= 1
    shared = min(len(poisson.requests), len(constant.requests))
    assert [r.document_id for r in poisson.requests[:shared]] == [
        r.document_id for r in constant.requests[:shared]
    ]


def test_a_schedule_survives_its_table_exactly():
    schedules = [phases().schedule(2.0, DOCUMENTS, seed=1, repeat=r) for r in range(2)]
    table = pa.concat_tables([s.to_table(r) for r, s in enumerate(schedules)])
    assert table.schema.equals(SCHEDULE)
    for repeat, schedule in enumerate(schedules):
        read = Schedule.from_table(table, repeat)
        assert read == schedule
        assert read.digest == schedule.digest


def test_hash_ids_and_priorities_survive_the_table_and_change_the_digest():
    plain = ScheduledRequest(0, 0.5, "d0", CONGESTED, 1000, 20)
    rows = [
        plain,
        replace(plain, hash_ids=(7, 2**62)),
        replace(plain, hash_ids=(7, 8)),
        replace(plain, hash_ids=()),
        replace(plain, priority=-3),
        replace(plain, priority=0),
    ]
    phases = (Phase(CONGESTED, 0.0, 1.0, 1.0),)
    schedules = [Schedule((row, plain), phases, 1.0) for row in rows]
    for schedule in schedules:
        table = schedule.to_table(0)
        assert table.schema.equals(SCHEDULE)
        assert Schedule.from_table(table, 0) == schedule
    assert len({schedule.digest for schedule in schedules}) == len(rows)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("overload", 0),
        ("overload", -1.2),
        ("calm_load", -0.5),
        ("recovery_load", 0),
        ("warmup_s", -1),
        ("calm_s", 0),
        ("congested_s", 0),
        ("recovery_s", -3),
        ("capacity_rps", 0),
        ("process", "poison"),
        ("burstiness", 0),
        ("burstiness", 2),
    ],
)
def test_a_wrong_value_names_its_key(key, value):
    with pytest.raises(ConfigError, match=rf"^arrivals\.{key}={value}"):
        phases(**{key: value})


def test_a_schedule_without_a_congested_request_is_refused():
    with pytest.raises(RunError, match="no request in its congested phase"):
        phases(process="constant", calm_s=61, congested_s=0.001).schedule(
            1.0, DOCUMENTS, seed=1, repeat=0
        )


def test_whether_the_capacity_is_needed():
    assert phases().needs_capacity
    assert not phases(capacity_rps=5.0).needs_capacity
