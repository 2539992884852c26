from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.claims import assess
from analysis.own_period import (
    BACK_WITHOUT_LOAD,
    STILL_THERE,
    OwnPeriod,
    expected_saving,
    own_period,
)
from analysis.summarize import claims
from analysis.together import READINGS
from bellman.load.schedule import Phase

PHASES = (
    Phase("warmup", 0.0, 10.0, 1.0),
    Phase("calm", 10.0, 30.0, 1.0),
    Phase("congested", 30.0, 60.0, 2.4),
    Phase("recovery", 60.0, 120.0, 1.0),
)
CALM = [90] * 10 + [8, 10] * 10
"""The warm-up's load counts for nothing; the calm phase's largest is 10: back is 11 and less."""
CONGESTED = [12 + second for second in range(30)]


def ticks(after: list[int], *, running: int = 3) -> pd.DataFrame:
    """One sample a second; `after` is what is outstanding from the end of the congestion on."""
    outstanding = np.array([*CALM, *CONGESTED, *after], dtype=float)
    return pd.DataFrame(
        {
            "time_s": np.arange(len(outstanding), dtype=float),
            "waiting": outstanding - running,
            "running": running,
        }
    )


@pytest.mark.parametrize(
    ("after", "end_s", "cut"),
    [
        ([40, 20, 12, 11, *[9] * 20], 63.0, None),  # at the limit it is back
        ([11] * 30, 60.0, None),  # not before the phase ends
        ([40, 11, *[12] * 3, *[11] * 20], 65.0, None),  # touches and leaves again
        ([40, *[11] * 10, 12, *[11] * 20], 72.0, None),  # leaves in the tenth second after
        ([40, *[11] * 11, 12, *[11] * 20], 61.0, None),  # leaves after that: a new affair
        ([40, 30, 11], 62.0, None),  # nothing above it until the episode ends
        ([*[40] * 60, 40, 5, 0], 121.0, BACK_WITHOUT_LOAD),
        ([*[40] * 60, 11, 5, 0], 120.0, None),  # the schedule's last instant still had its load
        ([40, 30, 20], 62.0, STILL_THERE),
    ],
)
def test_the_period_ends_when_the_load_is_back_to_stay(after, end_s, cut):
    assert own_period(ticks(after), PHASES) == OwnPeriod(30.0, end_s, cut)


def test_running_and_waiting_count_alike():
    after = [40, 20, 11, *[9] * 20]
    assert own_period(ticks(after, running=0), PHASES) == own_period(ticks(after), PHASES)


def test_samples_without_a_load_are_left_out():
    rows = ticks([40, 11, 11, 12, 11, *[11] * 20])
    rows.loc[rows["time_s"] == 63, "waiting"] = np.nan  # the one that leaves again
    assert own_period(rows, PHASES) == OwnPeriod(30.0, 61.0)


@pytest.mark.parametrize(
    ("rows", "phases", "reason"),
    [
        (ticks([]).iloc[:0], PHASES, "no timeline was recorded"),
        (ticks([40]).assign(running=np.nan), PHASES, "of the calm phase are unknown"),
        (ticks([]), PHASES, "after the congested phase are unknown"),
        (ticks([40]), PHASES[2:], "the schedule has no phase `calm`"),
        (ticks([40]), PHASES[:2], "the schedule has no phase `congested`"),
    ],
)
def test_without_what_it_is_made_of_there_is_a_reason(rows, phases, reason):
    found = own_period(rows, phases)
    assert isinstance(found, str) and found.endswith(reason)


def reading(claim, name="own period"):
    (found,) = (one for one in claim.companions if one.name == name)
    return found


def test_all_three_claims_over_the_own_periods_by_their_definitions(run):
    """Recompute each from the rows in plain Python."""
    ends, joules, done, lengths = {}, {"none": 0.0, "bellman": 0.0}, {}, {}
    for (arm, repeat), rows in run.timeline.groupby(["arm", "repeat"], observed=True):
        load = {row.time_s: row.waiting + row.running for row in rows.itertuples()}
        limit = 1.1 * max(load[second] for second in load if 20 <= second < 60)
        end_s = next(
            second
            for second in sorted(load)
            if second >= 160 and all(load[s] <= limit for s in load if second <= s <= second + 10)
        )
        ends[arm, repeat] = end_s
        energy_j = dict(zip(rows["time_s"], rows["energy_j"], strict=True))
        joules[arm] += energy_j[end_s] - energy_j[60.0]
        lengths[arm] = lengths.get(arm, 0.0) + end_s - 60.0
    sums: dict = {"none": {}, "bellman": {}}
    for row in run.requests.itertuples():
        done[row.arm] = done.get(row.arm, 0) + (
            60.0 <= row.last_token_s < ends[row.arm, row.repeat]
        )
        window = (row.intended_s - 60.0) // 10
        if 0 <= window < (max(ends.values()) - 60.0) // 10:
            sums[row.arm].setdefault(window, []).append(row.e2e_s)
    assert max(ends.values()) < 220.0  # before the schedule ends
    latency, energy, served = assess(run)
    largest = max(np.mean(sums["none"][w]) / np.mean(sums["bellman"][w]) for w in sums["none"])
    assert reading(latency).estimate.value == pytest.approx(largest)
    assert reading(energy).estimate.value == pytest.approx(1 - joules["bellman"] / joules["none"])
    rates = {arm: done[arm] / lengths[arm] for arm in done}
    assert reading(served).estimate.value == pytest.approx(rates["bellman"] / rates["none"] - 1)
    assert reading(energy).verdict == "reproduced" and energy.verdict != "reproduced"


def test_the_formula_stands_beside_the_measured_saving(run):
    saving, rates = expected_saving(run)
    assert saving == pytest.approx(0.19 / (1.19 - 0.5))  # the same, in other words
    assert rates == "rho 1.19, recovery 0.5 of the capacity"
    formula = reading(assess(run)[1], "own period, by its formula")
    assert (formula.estimate.value, formula.estimate.low, formula.verdict) == (saving, None, None)
    assert rates in formula.definition and "no measurement" in formula.definition


@pytest.mark.parametrize(
    ("changes", "saving"),
    [({"congested": 0.5}, 0.0), ({"recovery": 1.0}, None), ({"recovery": np.nan}, None)],
)
def test_the_formula_where_nothing_is_left_or_nothing_worked_off(run, changes, saving):
    capacity_rps = run.capacity["capacity_rps"]
    phases = tuple(
        replace(phase, rate_rps=changes.get(phase.name, phase.rate_rps / capacity_rps))
        for phase in run.phases
    )
    found = expected_saving(replace(run, phases=phases, capacity={"capacity_rps": 1.0}))
    assert (found and found[0]) == saving


def test_a_period_that_the_schedule_cut_is_a_lower_bound(make_run):
    run = make_run(overload=2.0)
    _, energy, _ = assess(run)
    caveat = "own period a lower bound: none in 2 of 2 repeats"
    assert any(one.startswith(caveat) for one in reading(energy).caveats)


def test_a_run_without_a_timeline_has_the_other_readings(run):
    latency, energy, served = assess(replace(run, timeline=pd.DataFrame()))
    for claim in (latency, energy, served):
        found = reading(claim)
        assert (found.estimate.value, found.verdict) == (None, "not measured")
        assert found.reason == "no timeline was recorded"
    assert reading(energy, "per request").verdict == "partly"
    assert claims(replace(run, timeline=pd.DataFrame()))["together"][-1]["reproduced"] is None


def test_an_energy_counter_that_was_lost_is_no_saving(run):
    timeline = run.timeline.assign(
        energy_j=run.timeline["energy_j"].where(run.timeline["time_s"] < 150)
    )
    found = reading(assess(replace(run, timeline=timeline))[1])
    assert (found.estimate.value, found.verdict) == (None, "not measured")
    assert found.reason == "the timeline has no energy at the edges of the periods"


def test_a_repeat_without_its_period_is_left_out_and_said_to_be(run):
    timeline = run.timeline[
        (run.timeline["arm"] != "none")
        | (run.timeline["repeat"] != 1)
        | (run.timeline["time_s"] < 160)
    ]
    found = reading(assess(replace(run, timeline=timeline))[1])
    assert found.estimate.value is not None
    assert any("known in 2 of 3 repeats" in caveat for caveat in found.caveats)


def test_arms_that_do_the_same_save_nothing_in_any_reading(make_run):
    run = make_run("again", arms=("none", "none-again"))
    for claim in assess(run):
        for one in claim.companions:
            assert one.verdict in {None, "not reproduced"}


def test_the_verdicts_at_once(run):
    found = claims(run)["together"]
    assert [entry["reading"] for entry in found] == list(READINGS)
    for entry in found:
        assert entry["treatment"] == "bellman"
        assert entry["reproduced"] == (set(entry["verdicts"].values()) == {"reproduced"})
    assert found[0]["verdicts"] == {claim.name: claim.verdict for claim in assess(run)}


def test_another_arm_than_the_papers_has_no_verdict_in_any_reading(make_run):
    run = make_run("three", arms=("none", "bellman", "bellman_knee"), paper_arm="bellman")
    found = [claim for claim in assess(run) if claim.treatment == "bellman_knee"]
    verdicts = {one.verdict for claim in found for one in claim.companions}
    assert verdicts == {None, "no claim"}
    assert {entry["treatment"] for entry in claims(run)["together"]} == {"bellman"}


def test_an_invalid_run_has_no_verdict_in_any_reading(make_run):
    for claim in assess(make_run(invalid_reasons=("lag p99 of 80 ms",))):
        for one in claim.companions:
            assert one.verdict in {None, "not measured"}
