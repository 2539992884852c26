"""Ramps, bursts, the sine day and the steady rate: expected counts where they are known."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from bellman.build import build
from bellman.errors import ConfigError

CONF = Path(__file__).parents[2] / "conf" / "arrivals"
DOCUMENTS = [f"d{i}" for i in range(50)]


def arrivals(kind, **changes):
    return build(OmegaConf.merge(OmegaConf.load(CONF / f"{kind}.yaml"), changes), "arrivals")


def times(kind, capacity_rps=20.0, **changes):
    schedule = arrivals(kind, **changes).schedule(capacity_rps, DOCUMENTS, seed=3, repeat=0)
    return schedule, np.array([request.intended_s for request in schedule.requests])


def count(instants, start_s, end_s):
    return int(((instants >= start_s) & (instants < end_s)).sum())


def test_a_ramp_rises_holds_and_falls():
    # constant process: counts are the integral of the rate, exactly.
    schedule, instants = times("ramp", process="constant", calm_load=0.5, overload=1.5)
    assert [phase.name for phase in schedule.phases] == ["warmup", "calm", "congested", "recovery"]
    assert count(instants, 0, 30) == 300
    assert count(instants, 90, 210) == pytest.approx(120 * 20, abs=1)  # mean load 1.0
    assert count(instants, 90, 100) == pytest.approx(10 * 10 + 10 * 10 / 12, abs=1)
    assert count(instants, 210, 270) == pytest.approx(60 * 30, abs=1)
    assert count(instants, 390, 510) == pytest.approx(1200, abs=1)
    assert schedule.phases[2].rate_rps == pytest.approx((2400 + 1800 + 2400) / 300)


def test_bursts_come_and_go():
    schedule, instants = times("bursts", process="constant")
    for burst in range(6):
        start_s = 30 + 60 * burst
        assert count(instants, start_s, start_s + 20) == pytest.approx(800, abs=1)
        assert count(instants, start_s + 20, start_s + 60) == pytest.approx(400, abs=1)
    assert schedule.phases[1].end_s == 30 + 6 * 20 + 5 * 40
    assert schedule.phases[1].rate_rps == pytest.approx((6 * 800 + 5 * 400) / 320)


def test_a_sine_day_peaks_at_noon():
    schedule, instants = times("sine_day", process="constant")
    assert count(instants, 30, 1230) == pytest.approx(1200 * 16, abs=2)
    assert count(instants, 570, 690) / 120 == pytest.approx(26.0, rel=0.01)
    assert count(instants, 30, 90) / 60 == pytest.approx(6.0, rel=0.05)
    assert schedule.end_s == pytest.approx(1230)


def test_a_steady_rate_is_absolute_or_relative():
    schedule, _ = times("steady", process="constant", rate_rps=7.0, load=None, duration_s=100)
    assert Counter(request.phase for request in schedule.requests) == {
        "warmup": 210,
        "congested": 700,
    }
    assert not arrivals("steady", rate_rps=7.0, load=None).needs_capacity
    relative, _ = times("steady", process="constant", load=0.35, duration_s=100)
    assert relative == schedule


@pytest.mark.parametrize(
    ("kind", "changes", "key"),
    [
        ("steady", {"rate_rps": 5.0}, "rate_rps"),
        ("steady", {"load": None}, "rate_rps"),
        ("steady", {"load": -1}, "load"),
        ("steady", {"duration_s": 0}, "duration_s"),
        ("ramp", {"rise_s": 0}, "rise_s"),
        ("ramp", {"overload": 0}, "overload"),
        ("bursts", {"bursts": 0}, "bursts"),
        ("bursts", {"off_s": 0}, "off_s"),
        ("sine_day", {"amplitude": 0.9}, "amplitude"),
        ("sine_day", {"days": 0}, "days"),
    ],
)
def test_a_wrong_value_names_its_key(kind, changes, key):
    with pytest.raises(ConfigError, match=rf"^arrivals\.{key}="):
        arrivals(kind, **changes)


@pytest.mark.parametrize("kind", ["phases", "steady", "ramp", "bursts", "sine_day"])
@pytest.mark.parametrize("process", ["poisson", "gamma", "weibull"])
def test_every_kind_keeps_its_mean_rate_and_order_for_every_process(kind, process):
    changes = {"process": process}
    if process != "poisson":
        changes["burstiness"] = 0.5
    schedule, instants = times(kind, **changes)
    assert (np.diff(instants) >= 0).all()
    expected = sum((p.end_s - p.start_s) * p.rate_rps for p in schedule.phases)
    assert len(instants) == pytest.approx(expected, abs=5 * (5 * expected) ** 0.5)
    starts = [phase.start_s for phase in schedule.phases]
    assert starts == sorted(starts) and starts[0] == 0
    ends = [phase.end_s for phase in schedule.phases]
    assert starts[1:] == ends[:-1] and ends[-1] == schedule.end_s
