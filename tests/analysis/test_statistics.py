import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import statistics
from analysis.statistics import Estimate

POSITIVE = st.lists(st.floats(0.1, 1e4), min_size=2, max_size=6)


def mean(values: np.ndarray) -> Estimate:
    return statistics.pooled_mean(values, np.ones(len(values)))


def test_equal_arms_have_ratio_exactly_one():
    values = np.array([3.0, 5.0, 7.0])
    assert statistics.ratio(values, values) == Estimate(1.0, 1.0, 1.0)


def test_one_repeat_has_no_interval():
    assert statistics.ratio(np.array([6.0]), np.array([3.0])) == Estimate(2.0, None, None)
    assert mean(np.empty(0)) == Estimate(None)


def test_ratio_pools_the_repeats():
    estimate = statistics.ratio(np.array([1.0, 9.0]), np.array([1.0, 1.0]))
    assert estimate.value == 5.0
    assert 0 < estimate.low < 1.0 and estimate.high > 9.0


def test_ratio_of_means_weights_by_requests():
    sums_a, counts_a = np.array([10.0, 90.0]), np.array([10.0, 10.0])
    sums_b, counts_b = np.array([10.0, 10.0]), np.array([10.0, 10.0])
    assert statistics.ratio_of_means(sums_a, counts_a, sums_b, counts_b).value == 5.0


def test_nothing_to_divide_by_is_none():
    zeros = np.zeros(3)
    assert statistics.ratio(np.ones(3), zeros) == Estimate(None)


def test_a_resample_without_a_value_leaves_no_interval():
    # Drawn twice, the second repeat has nothing to divide by.
    estimate = statistics.ratio(np.array([3.0, 3.0, 3.0]), np.array([1.0, 0.0, 2.0]))
    assert estimate == Estimate(3.0)


def test_infinite_values_have_no_interval():
    assert statistics.ratio(np.array([1.0, np.inf]), np.ones(2)) == Estimate(np.inf)
    assert statistics.ratio(np.ones(2), np.array([1.0, np.inf])) == Estimate(0.0)


def test_the_interval_of_two_values_is_student_t_s():
    estimate = mean(np.array([1.0, 3.0]))
    assert estimate.value == 2.0
    assert estimate.high - 2.0 == pytest.approx(12.706 * 1.0, rel=0.05)  # t x s / sqrt(n)


@settings(deadline=None, max_examples=50)
@given(POSITIVE, st.floats(0.1, 10))
def test_a_constant_factor_between_paired_arms_has_a_tight_interval(values, factor):
    base = np.array(values)
    estimate = statistics.ratio(factor * base, base)
    for end in (estimate.value, estimate.low, estimate.high):
        assert end == pytest.approx(factor)


@settings(deadline=None, max_examples=50)
@given(POSITIVE)
def test_complement_keeps_low_below_high(values):
    estimate = statistics.ratio(np.array(values), np.array(values[::-1])).complement()
    assert estimate.low <= estimate.value + 1e-9 and estimate.value <= estimate.high + 1e-9


def test_same_records_same_interval():
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    assert mean(values) == mean(values.copy())


@pytest.mark.parametrize("repeats", [2, 3, 5, 10])
def test_the_interval_covers_the_truth_in_95_of_100_cases(repeats):
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(300):
        estimate = mean(random.normal(10.0, 2.0, size=repeats))
        hits += estimate.low <= 10.0 <= estimate.high
    assert hits >= 0.92 * 300


def test_the_interval_of_a_ratio_covers_the_truth():
    random = np.random.default_rng(4)
    hits = 0
    for _ in range(300):
        base = random.lognormal(3.0, 0.3, size=5)
        treated = base / 4.0 * random.lognormal(0.0, 0.2, size=5)
        estimate = statistics.ratio(base, treated)
        hits += estimate.low <= 4.0 * np.exp(-(0.2**2) / 2) <= estimate.high
    assert hits >= 0.90 * 300
