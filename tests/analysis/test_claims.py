import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.claims import assess
from analysis.frames import derive
from analysis.statistics import Estimate
from analysis.verdict import Claim, judge


def claim(value: float | None, low: float | None, high: float | None) -> Claim:
    estimate = Estimate(value, low, high)
    return Claim("latency", "bellman", "8x", 8.0, "times", "a ratio", estimate, "simulated")


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (9.0, 8.5, 9.5, "reproduced"),
        (9.0, 2.0, 20.0, "reproduced"),
        (6.0, 5.0, 8.5, "reproduced"),  # the interval contains the paper's figure
        (6.0, 5.0, 7.9, "partly"),
        (6.0, 1.5, 30.0, "partly"),  # contains the figure, and nearly everything else
        (9.0, 0.9, 20.0, "not reproduced"),  # reaches it, and may be no effect at all
        (1.69, 1.6, 1.8, "not reproduced"),  # an effect, and no tenth of the paper's
        (1.71, 1.6, 1.8, "partly"),
        (1.0, 1.0, 1.0, "not reproduced"),
        (0.5, 0.4, 0.6, "not reproduced"),
        (0.5, None, None, "not reproduced"),
        (9.0, None, None, "not measured"),
        (None, None, None, "not measured"),
        (math.inf, 3.0, math.inf, "reproduced"),
    ],
)
def test_verdicts(value, low, high, verdict):
    assert judge(claim(value, low, high)).verdict == verdict


def test_dropping_requests_cannot_reproduce():
    judged = judge(claim(9.0, 8.5, 9.5), capped=True)
    assert judged.verdict == "partly" and "drops" in judged.reason


def test_a_maximum_over_noise_is_not_an_effect():
    judged = judge(claim(1.4, 1.2, 9.0), guard=Estimate(1.0, 0.9, 1.1))
    assert judged.verdict == "not reproduced"


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-2, 20), min_size=3, max_size=3), st.booleans())
def test_no_verdict_but_these_for_an_interval_at_no_effect(numbers, capped):
    low, value, high = sorted(numbers)
    judged = judge(claim(value, low, high), capped=capped)
    assert judged.reason
    if low <= 1.0 or value < 1.7:
        assert judged.verdict == "not reproduced"
    elif capped or high < 8.0 or (low < 4.5 and value < 8.0):
        assert judged.verdict == "partly"


def test_claims_by_their_definitions(run):
    """Recompute each estimate from the rows in plain Python."""
    start_s, end_s = 60.0, 160.0
    e2e: dict[str, dict[int, list[float]]] = {"none": {}, "bellman": {}}
    finished = {"none": 0, "bellman": 0}
    for row in run.requests.itertuples():
        if start_s <= row.intended_s < end_s:
            window = int((row.intended_s - start_s) // 10)
            e2e[row.arm].setdefault(window, []).append(row.last_token_s - row.intended_s)
        finished[row.arm] += start_s <= row.last_token_s < end_s
    ratios = [np.mean(e2e["none"][w]) / np.mean(e2e["bellman"][w]) for w in range(10)]
    late = {
        int((r.intended_s - start_s) // 10)
        for r in run.requests.itertuples()
        if start_s <= r.intended_s < end_s <= r.last_token_s
    }
    assert 0 < len(late) < 10
    joules = run.energy[run.energy["window"] == "congested"].groupby("arm")["energy_j"].sum()
    latency, energy, served = assess(run)
    assert latency.estimate.value == pytest.approx(max(ratios))
    inside = latency.companions[1].estimate.value
    assert inside == pytest.approx(max(ratios[w] for w in range(10) if w not in late))
    assert energy.estimate.value == pytest.approx(1 - joules["bellman"] / joules["none"])
    assert served.estimate.value == pytest.approx(finished["bellman"] / finished["none"] - 1)
    assert latency.source == energy.source == served.source == "simulated"
    assert [latency.verdict, served.verdict] == ["reproduced", "partly"]
    per_request = (joules["bellman"] / finished["bellman"]) / (joules["none"] / finished["none"])
    assert energy.companions[0].estimate.value == pytest.approx(1 - per_request)


def test_the_same_arm_twice_has_ratio_exactly_one(make_run):
    run = make_run("again", arms=("none", "none-again"))
    latency, energy, served = assess(run)
    assert latency.estimate == Estimate(1.0, 1.0, 1.0)
    assert energy.estimate == served.estimate == Estimate(0.0, 0.0, 0.0)
    assert {c.verdict for c in (latency, energy, served)} == {"not reproduced"}


def test_the_papers_verdicts_are_for_the_named_arm_alone(make_run):
    run = make_run("three", arms=("none", "bellman", "bellman_knee"), paper_arm="bellman")
    verdicts = {(c.treatment, c.name): c.verdict for c in assess(run)}
    assert len(verdicts) == 6
    for (treatment, _), verdict in verdicts.items():
        assert (verdict == "no claim") == (treatment != "bellman")
    assert {c.estimate.value is None for c in assess(run)} == {False}


def test_no_congestion_no_effect(make_run):
    assert assess(make_run(overload=0.5))[0].estimate == Estimate(1.0, 1.0, 1.0)


def test_noise_between_equal_arms_is_not_an_effect(run):
    random = np.random.default_rng(1)
    rows = run.requests[run.requests["arm"] == "none"]
    noisy = rows.assign(
        arm="bellman", last_token_s=rows["last_token_s"] + random.exponential(1.0, len(rows))
    )
    base = rows.assign(last_token_s=rows["last_token_s"] + random.exponential(1.0, len(rows)))
    both = derive(pd.concat([base, noisy], ignore_index=True))
    latency = assess(replace(run, requests=both))[0]
    assert latency.estimate.value > 1.0  # the largest of ten noisy ratios
    assert latency.verdict == "not reproduced"


def test_a_window_that_stands_out_is_said_to(run, make_run):
    even = assess(make_run(arms=("none", "none-again")))[0]
    assert not any("stands out" in caveat for caveat in even.caveats)
    rows = run.requests
    last = (rows["arm"] == "none") & (rows["intended_s"] >= 150) & (rows["intended_s"] < 160)
    slow = derive(rows.assign(last_token_s=rows["last_token_s"] + 100.0 * last))
    before = (rows["intended_s"] >= 60) & (rows["intended_s"] < 150)
    fast = (rows["arm"] == "none") & before & (rows["e2e_s"] > 7)
    slow = derive(slow.assign(last_token_s=slow["last_token_s"].where(~fast, slow["sent_s"] + 7)))
    latency = assess(replace(run, requests=slow))[0]
    assert latency.verdict == "reproduced"
    assert latency.reason.endswith("one window alone reaches the figure")
    (caveat,) = (caveat for caveat in latency.caveats if "stands out" in caveat)
    second = float(caveat.split()[-1].rstrip("x"))
    assert 1 < second < 8 < latency.estimate.value
    assert latency.companions[1].estimate.value <= second + 0.01


def test_a_treatment_that_rejects_is_partly_at_most(make_run):
    latency = assess(make_run(reject_every={"bellman": 20}))[0]
    assert latency.estimate.value > 8.0
    assert latency.verdict == "partly"
    assert any("bellman 4.6%" in caveat for caveat in latency.caveats)
    p99 = next(c for c in latency.companions if c.name.startswith("p99"))
    assert p99.estimate.value == 0.0  # the lost requests' latency is infinite


def test_a_baseline_that_rejects_is_only_named(make_run):
    latency = assess(make_run(reject_every={"none": 50}))[0]
    assert "drops" not in latency.reason
    assert any("understates" in caveat for caveat in latency.caveats)


def test_missing_energy_is_not_measured_and_says_why(make_run):
    energy = assess(make_run(energy_source=None))[1]
    assert (energy.verdict, energy.reason) == ("not measured", "no meter found")
    assert energy.estimate.value is None and energy.source is None


def test_the_whole_episodes_energy_leaves_the_warm_up_out(run):
    windows = run.energy[~run.energy["window"].isin(["warmup", "total"])]
    joules = windows.groupby("arm")["energy_j"].sum()
    energy = assess(run)[1]
    (whole,) = (c for c in energy.companions if c.name == "whole episode")
    assert whole.estimate.value == pytest.approx(1 - joules["bellman"] / joules["none"])


def test_doubtful_joules_are_named_where_they_are_used(make_run):
    energy = assess(make_run(energy_drift=0.4))[1]
    assert energy.estimate.value is not None
    (doubt,) = (caveat for caveat in energy.caveats if caveat.startswith("doubtful"))
    assert "congested energy of repeat 1, none" in doubt and "+40.0%" in doubt
    assert not any("doubtful" in caveat for caveat in assess(make_run("b"))[1].caveats)


def test_when_every_request_failed(make_run):
    assert {c.verdict for c in assess(make_run(fail_all=True))} == {"not measured"}


def test_without_a_congested_phase(make_run):
    claims = assess(make_run(phases=(("calm", 40.0, 0.5),)))
    assert {c.reason for c in claims} == {"the schedule has no phase `congested`"}


def test_an_invalid_run_claims_nothing(make_run):
    for found in assess(make_run(invalid_reasons=("lag p99 of 80 ms",))):
        assert found.verdict == "not measured"
        assert found.reason == "invalid run: lag p99 of 80 ms"


def test_one_repeat_is_an_estimate_without_a_verdict(make_run):
    latency = assess(make_run(repeats=1))[0]
    assert latency.estimate.value > 8 and latency.estimate.low is None
    assert latency.verdict == "not measured" and "repeats >= 2" in latency.reason


def test_a_single_arm_claims_nothing(make_run):
    assert assess(make_run(arms=("none",))) == []
