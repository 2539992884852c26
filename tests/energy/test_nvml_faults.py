"""A driver that fails for a moment or for good, and counters that cannot be right.

The episode is 2-12 s by the stub's clock, its windows 2-7 s and 7-12 s.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.energy.stub import FIRST, joules, measure, run_with_stub

CARD = f"{FIRST},1,0,0,0"
ON_IT = {"STUB_GPUS": CARD, "STUB_PROCESSES": "worker"}


def windows(result: Any) -> list[tuple[float | None, str | None]]:
    found = (result["windows"][name] for name in ("first", "second"))
    return [(window["energy_j"], window["reason"]) for window in found]


def test_nothing_is_said_where_nothing_went_wrong(library: Path) -> None:
    result = measure(library, **ON_IT)
    assert windows(result) == [(3000, None), (3000, None)]
    assert (result["report"]["reason"], result["report"]["details"]["incidents"]) == (None, [])


@pytest.mark.parametrize("code", [999, 10, 17])
def test_a_failure_between_good_readings_is_bridged_and_said(library: Path, code: int) -> None:
    result = measure(library, STUB_FAULTS=f"energy,0,4.05,4.25,{code}", **ON_IT)
    (first_j, said), (second_j, nothing) = windows(result)
    assert (first_j, second_j, nothing) == (3000, 3000, None)
    assert "energy counter of GPU-bbbb2222" in said and f"NVML error {code}" in said
    assert "(at 2.1-2.2 s)" in said
    (gpu,) = result["report"]["details"]["gpus"]
    assert gpu["failed_reads"] == 2 and str(code) in gpu["first_failure"]


def test_a_failure_at_an_edge_is_bridged_and_said_in_both_windows(library: Path) -> None:
    result = measure(library, STUB_FAULTS="energy,0,6.55,7.35,999", **ON_IT)
    (first_j, first), (second_j, second) = windows(result)
    assert (first_j, second_j) == pytest.approx((3000, 3000), abs=0.01)
    assert "NVML error 999" in str(first) and "NVML error 999" in str(second)
    assert result["readings"][1]["time_s"] == 7.0  # the edge, not when the driver answered


def test_a_failure_that_lasts_at_an_edge_leaves_its_windows_null(library: Path) -> None:
    result = measure(library, STUB_FAULTS="energy,0,5,10,999", **ON_IT)
    assert [energy_j for energy_j, _ in windows(result)] == [None, None]
    assert all("NVML error 999" in str(reason) for _, reason in windows(result))
    total = result["windows"]["total"]
    assert total["energy_j"] == pytest.approx(6000, abs=0.01)
    assert "NVML error 999" in total["reason"]


@pytest.mark.parametrize(("code", "said"), [(15, "GPU is lost"), (16, "GPU requires restart")])
def test_a_lost_card_leaves_what_was_measured_before(library: Path, code: int, said: str) -> None:
    result = measure(library, STUB_FAULTS=f"energy,0,8,99,{code};power,0,8,99,{code}", **ON_IT)
    (first_j, first), (second_j, second) = windows(result)
    assert (first_j, first, second_j) == (3000, None, None)
    assert said in second
    assert result["windows"]["first"]["source"] == "measured"
    assert result["windows"]["total"]["energy_j"] is None
    assert said in result["report"]["reason"]


def test_a_counter_that_begins_again_is_not_added_up(library: Path) -> None:
    result = measure(library, STUB_FAULTS="reset,0,8,99,0", **ON_IT)
    (first_j, _), (second_j, second) = windows(result)
    assert (first_j, second_j) == (3000, None)
    assert "went back" in second and "the driver was loaded anew" in second


def test_a_counter_that_stands_still_is_no_reading(library: Path) -> None:
    result = measure(library, STUB_FAULTS="still,0,8,99,0", **ON_IT)
    (first_j, _), (second_j, second) = windows(result)
    assert (first_j, second_j) == (3000, None)
    assert "does not move" in second


def test_a_counter_that_stood_still_is_doubted(library: Path) -> None:
    result = measure(library, STUB_FAULTS="still,0,3.01,6,0", **ON_IT)
    (first_j, first), (second_j, second) = windows(result)
    assert (first_j, second_j, second) == (3000, 3000, None)
    assert "does not move (at 1.1-3.9 s)" in str(first)


@pytest.mark.parametrize(("step_s", "doubted"), [("0.02", False), ("0.1", False), ("0.5", True)])
def test_a_counter_of_long_steps_leaves_the_edges_uncertain(
    library: Path, step_s: str, doubted: bool
) -> None:
    result = measure(library, STUB_STEP_S=step_s, **ON_IT)
    for energy_j, reason in windows(result):
        assert energy_j == pytest.approx(3000, abs=600 * float(step_s) + 1)
        assert ("a counter that moves in steps" in str(reason)) is doubted


@pytest.mark.parametrize("unit", ["1000", "0.001"])
def test_a_counter_in_another_unit_is_said_so(library: Path, unit: str) -> None:
    result = measure(library, STUB_UNIT=unit, **ON_IT)
    assert all("counter and power samples differ" in str(reason) for _, reason in windows(result))


def test_power_above_the_cards_limit_is_said_so_where_the_samples_agree(library: Path) -> None:
    microwatts = FIRST.replace("600", "600000")
    result = measure(library, STUB_GPUS=f"{microwatts},1,0,0,0", STUB_PROCESSES="worker")
    said = "says 600000 W on average, above the card's limit of 700 W"
    assert said in result["report"]["reason"]
    assert all(said in str(reason) for _, reason in windows(result))


def test_power_that_fails_for_a_moment_is_said_so(library: Path) -> None:
    result = measure(library, STUB_FAULTS="power,0,4.05,4.25,999", **ON_IT)
    (first_j, first), (second_j, second) = windows(result)
    assert (first_j, second_j, second) == (3000, 3000, None)
    assert "power of GPU-bbbb2222" in str(first) and "no cross-check" in str(first)
    assert result["windows"]["first"]["sampled_j"] == pytest.approx(3000, abs=0.01)


def test_power_that_fails_for_good_leaves_the_counter_alone_and_says_so(library: Path) -> None:
    result = measure(library, STUB_FAULTS="power,0,8,99,999", **ON_IT)
    (first_j, first), (second_j, second) = windows(result)
    assert (first_j, first, second_j) == (3000, None, 3000)
    assert "no cross-check" in str(second)
    assert result["windows"]["second"]["sampled_j"] is None


def test_a_card_without_a_counter_is_null_whatever_its_power(library: Path) -> None:
    result = measure(library, STUB_GPUS=f"{FIRST},1,3,0,0", STUB_PROCESSES="worker")
    assert joules(result) == [None] * 3
    assert all("Not Supported" in str(reason) for _, reason in windows(result))
    assert result["report"]["source"] is None


def test_a_driver_that_hangs_stalls_nothing(library: Path) -> None:
    result = run_with_stub(library, "hang_stub.py", STUB_GPUS=CARD)
    late = result["late"]
    assert late["events"] == ["the driver hangs", "the loop runs", "the driver answers", "read"]
    assert late["energy_j"] == 600 * 3
    assert late["for_the_instant_of_the_call"] is True
    never = result["never"]
    assert (never["energy_j"], never["reason"]) == (None, "nvml: the driver does not answer")
    assert never["hangs_still"] is True
    assert "nvml: the driver does not answer" in never["incident"]
    opening = result["opening"]
    assert "the driver does not open its cards: no answer within" in opening["reason"]


def test_a_sampler_that_dies_is_said_so(library: Path) -> None:
    result = run_with_stub(library, "hang_stub.py", "sampler", STUB_GPUS=CARD)
    (said,) = result["incidents"]
    assert said.startswith("nvml: power is not sampled any more: ZeroDivisionError")
    assert result["energy_j"] == 600 * 3
