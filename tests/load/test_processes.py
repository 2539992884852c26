"""Arrival processes against their formulas: rate, dispersion, gaps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman.load.processes import BURSTY, PROCESSES
from bellman.load.rate_profile import Segment, expected_requests, to_clock


def asymptotic_dispersion(process: str, shape: float) -> float:
    if process == "gamma":
        return 1 / shape
    if process == "weibull":
        return math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1
    return 1.0


@pytest.mark.parametrize(
    ("process", "shape"),
    [("poisson", 1.0), ("gamma", 0.5), ("gamma", 2.0), ("weibull", 0.7), ("weibull", 1.5)],
)
def test_rate_gaps_and_dispersion_are_the_formulas(process, shape):
    windows, length = 4000, 60
    unit = PROCESSES[process](windows * length, shape, np.random.default_rng(7))
    formula = asymptotic_dispersion(process, shape)

    assert len(unit) == pytest.approx(
        windows * length, abs=4 * math.sqrt(formula * windows * length)
    )
    gaps = np.diff(unit)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(formula, rel=0.05)
    counts = np.histogram(unit, bins=windows, range=(0, windows * length))[0]
    # Standard error of a variance over n windows is sqrt(2 / n) = 2.2 % of it; the window's
    # finite length adds about 1 / length.
    assert counts.var() / counts.mean() == pytest.approx(formula, rel=0.11)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_poisson_dispersion_is_one_however_many_workers_share_the_schedule(workers):
    windows, length = 3000, 40
    unit = PROCESSES["poisson"](windows * length, 1.0, np.random.default_rng(11))
    shares = [unit[worker::workers] for worker in range(workers)]
    merged = np.sort(np.concatenate(shares))
    counts = np.histogram(merged, bins=windows, range=(0, windows * length))[0]
    half_width = 1.96 * math.sqrt(2 / (windows - 1))
    assert abs(counts.var(ddof=1) / counts.mean() - 1) < half_width


@pytest.mark.parametrize(("process", "shape"), [("poisson", 1), ("gamma", 0.3), ("weibull", 0.5)])
def test_the_first_second_has_the_mean_rate_too(process, shape):
    generator = np.random.default_rng(3)
    counts = [len(PROCESSES[process](1.0, shape, generator)) for _ in range(20_000)]
    standard_error = np.std(counts) / math.sqrt(len(counts))
    assert np.mean(counts) == pytest.approx(1.0, abs=4 * standard_error)


def test_gamma_and_weibull_of_shape_one_are_poisson():
    for process in BURSTY:
        gaps = np.diff(PROCESSES[process](50_000, 1.0, np.random.default_rng(1)))
        quantiles = np.quantile(gaps, [0.1, 0.5, 0.9])
        assert quantiles == pytest.approx(-np.log([0.9, 0.5, 0.1]), rel=0.03)


def test_constant_arrivals_are_exact_multiples_of_the_gap():
    times = to_clock(
        PROCESSES["constant"](60, 1.0, np.random.default_rng(0)), [Segment(0, 10, 6, 6)]
    )
    assert times == pytest.approx(np.arange(60) / 6, abs=1e-6)
    quarter = to_clock(
        PROCESSES["constant"](40, 1.0, np.random.default_rng(0)), [Segment(0, 10, 4, 4)]
    )
    assert (quarter == np.arange(40) / 4).all()


@given(
    st.lists(
        st.tuples(st.floats(0.1, 100), st.floats(0, 50), st.floats(0, 50)), min_size=1, max_size=6
    ),
    st.sampled_from(sorted(PROCESSES)),
    st.integers(0, 1000),
)
def test_arrivals_follow_any_profile(stretches, process, seed):
    start_s, segments = 0.0, []
    for duration_s, low_rps, high_rps in stretches:
        segments.append(Segment(start_s, start_s + duration_s, low_rps, high_rps))
        start_s += duration_s
    unit = PROCESSES[process](expected_requests(segments), 1.0, np.random.default_rng(seed))
    times = to_clock(unit, segments)
    assert (np.diff(times) >= 0).all()
    assert (times >= 0).all() and (times <= start_s).all()
    # Integrating the rate up to an arrival gives the arrival's instant at rate 1 again.
    for time_s, instant in zip(times[:50], unit[:50], strict=True):
        integral = 0.0
        for segment in segments:
            t = min(max(time_s - segment.start_s, 0.0), segment.end_s - segment.start_s)
            slope = (segment.end_rps - segment.start_rps) / (segment.end_s - segment.start_s)
            integral += segment.start_rps * t + slope * t * t / 2
        assert integral == pytest.approx(instant, abs=2e-6 * 50 + 1e-9 * instant)
