"""Energy windows from a meter's readings at the edges of the phases."""

import pytest

from bellman.energy.base import EnergyReading, EnergyReport
from bellman.load.schedule import Phase
from bellman.timeline import energy_windows, phase_at

PHASES = [Phase("warmup", 0, 10, 1.0), Phase("congested", 10, 30, 2.0)]


def windows(readings, report):
    made = energy_windows(PHASES, readings, report, repeat=0, arm="none", start_s=100.0)
    return {window.window: window for window in made}


def test_phases_cover_the_schedule_and_the_drain_the_rest():
    names = [phase_at(PHASES, time_s) for time_s in (0, 9.9, 10, 29.9, 30, 500)]
    assert names == ["warmup", "warmup", "congested", "congested", "drain", "drain"]


def test_windows_are_differences_of_the_counter():
    joules = [5.0, 105.0, 505.0, 515.0]
    readings = [
        EnergyReading(time_s, energy_j, sampled_j=energy_j)
        for time_s, energy_j in zip((100.0, 110.0, 130.0, 135.0), joules, strict=True)
    ]
    made = windows(readings, EnergyReport("nvml", "measured"))
    assert {name: window.energy_j for name, window in made.items()} == {
        "warmup": 100.0,
        "congested": 400.0,
        "drain": 10.0,
        "total": 410.0,  # without the warm-up
    }
    assert made["congested"].mean_power_w == 20.0
    assert (made["drain"].start_s, made["drain"].end_s) == (30.0, 35.0)
    assert {window.reason for window in made.values()} == {None}


def test_not_measured_is_null_with_its_reason():
    readings = [EnergyReading(time_s, None) for time_s in (100.0, 110.0, 130.0, 135.0)]
    made = windows(readings, EnergyReport("none", None, "no driver"))
    assert {(w.energy_j, w.mean_power_w, w.source, w.reason) for w in made.values()} == {
        (None, None, None, "no driver")
    }


@pytest.mark.parametrize(("factor", "flagged"), [(1.04, False), (1.06, True), (0.94, True)])
def test_a_counter_that_differs_from_the_samples_is_flagged(factor, flagged):
    readings = [
        EnergyReading(time_s, joules, sampled_j=factor * joules)
        for time_s, joules in ((100.0, 0.0), (110.0, 100.0), (130.0, 300.0), (135.0, 350.0))
    ]
    made = windows(readings, EnergyReport("nvml", "measured"))
    assert all(bool(window.reason) == flagged for window in made.values())


def test_a_counter_that_stands_still_is_flagged():
    readings = [
        EnergyReading(time_s, 7.0, sampled_j=time_s) for time_s in (100.0, 110.0, 130.0, 135.0)
    ]
    made = windows(readings, EnergyReport("nvml", "measured"))
    assert "stands still" in str(made["congested"].reason)
