"""A sensor with faults: noisy counts, readings that fail, and nothing else."""

import math

import numpy as np
import pytest

from bellman.controllers.none import NoControl
from bellman.controllers.publisher import SignalPublisher
from bellman.sensing.failure import SensorFailed
from bellman.sensing.faults import faulty
from bellman.sensing.observation import Observation

TRUE = Observation(time_s=1.0, waiting=1000, running=2000, kv_usage=0.5)


def test_without_faults_the_observation_is_the_true_one():
    read = faulty(lambda: TRUE, spread=0.0, missing=0.0, seed=0)
    assert [read() for _ in range(10)] == [TRUE] * 10


def test_the_counts_are_noisy_as_configured_and_nothing_else_is():
    read = faulty(lambda: TRUE, spread=0.5, missing=0.0, seed=0)
    seen = [read() for _ in range(2_000)]
    logarithms = np.log([one.outstanding / TRUE.outstanding for one in seen])
    assert float(logarithms.std()) == pytest.approx(0.5, rel=0.1)
    assert math.isclose(float(np.median(logarithms)), 0.0, abs_tol=0.05)
    assert {one.kv_usage for one in seen} == {0.5}


def test_a_share_of_the_readings_fails_and_the_same_ones_again():
    def failures() -> list[bool]:
        read = faulty(lambda: TRUE, spread=0.0, missing=0.2, seed=7)
        found = []
        for _ in range(2_000):
            try:
                read()
                found.append(False)
            except SensorFailed:
                found.append(True)
        return found

    first = failures()
    assert sum(first) == pytest.approx(400, abs=60)
    assert failures() == first


def test_a_failure_that_was_asked_for_withdraws_the_level_and_tells_nobody(caplog):
    read = faulty(lambda: TRUE, spread=0.0, missing=0.5, seed=7)
    publisher = SignalPublisher(NoControl(), read, 1.0)
    there = []
    for second in range(40):
        publisher.update(float(second), 1.0)
        there.append(publisher.signal is not None)
    assert 5 < sum(there) < 35
    assert publisher.outages > 0
    assert not caplog.records
