"""The meter against a small driver library, compiled here and loaded as the real one would be."""

from pathlib import Path

import pytest

from tests.energy.stub import BOTH, EPISODE_S, FIRST, SECOND, joules, measure


def test_both_cards_are_summed_and_cross_checked(library: Path) -> None:
    result = measure(library, STUB_GPUS=BOTH)
    assert joules(result) == pytest.approx([0, 3500, 7000], abs=0.01)
    assert [reading["power_w"] for reading in result["readings"]] == pytest.approx([700] * 3)
    report, details = result["report"], result["report"]["details"]
    assert (report["method"], report["source"]) == ("nvml", "measured")
    assert details["energy_j"] == pytest.approx(7000, abs=0.01)
    assert details["sampled_energy_j"] == pytest.approx(7000, abs=0.01)
    assert details["differs_by_over_5_percent"] is False
    assert [gpu["uuid"] for gpu in details["gpus"]] == ["GPU-aaaa1111", "GPU-bbbb2222"]
    assert [gpu["counter_j"] for gpu in details["gpus"]] == pytest.approx([1000, 6000], abs=0.01)


def test_idle_baseline_comes_before_the_episode(library: Path) -> None:
    result = measure(library, STUB_GPUS=BOTH)
    assert result["started_after_s"] == pytest.approx(2.0, abs=0.15)
    assert result["report"]["details"]["idle_power_w"] == pytest.approx(700)
    assert joules(result)[0] == 0


def test_clocks_temperature_limit_and_throttling_are_logged(library: Path) -> None:
    gpu = measure(library, STUB_GPUS=BOTH)["report"]["details"]["gpus"][0]
    assert gpu["power_kind"] == ["instant"]
    assert gpu["power_samples"] in range(99, 103)
    assert gpu["sm_clock_mhz"]["mean"] == 1980
    assert gpu["memory_clock_mhz"]["mean"] == 2619
    assert gpu["temperature_c"]["max"] == 61
    assert gpu["power_limit_w"]["min"] == 700
    assert gpu["throttled_share"]["software power cap"] == pytest.approx(7 / 11, abs=0.1)


@pytest.mark.parametrize(
    ("visible", "watts"),
    [
        ("0", 100),  # the bus order's first, which NVML calls 1
        ("1", 600),
        ("1,0", 700),
        ("GPU-bbbb", 600),
        ("GPU-aaaa1111,GPU-bbbb2222", 700),
        ("0,7,1", 100),  # nothing counts after the first invalid one
    ],
)
def test_cuda_visible_devices_means_the_same_card(
    library: Path, visible: str, watts: float
) -> None:
    result = measure(library, STUB_GPUS=BOTH, CUDA_VISIBLE_DEVICES=visible)
    assert joules(result)[-1] == pytest.approx(watts * EPISODE_S, abs=0.01)


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"STUB_GPUS": BOTH, "CUDA_VISIBLE_DEVICES": ""}, "no GPU is visible"),
        ({"STUB_GPUS": BOTH, "CUDA_VISIBLE_DEVICES": "-1"}, "no GPU is visible"),
        (
            {"STUB_GPUS": BOTH, "CUDA_VISIBLE_DEVICES": "MIG-3f1d"},
            "names a MIG slice (MIG-3f1d)",
        ),
        ({"STUB_GPUS": f"{FIRST},1,0,0,1"}, "GPU-bbbb2222 is split by MIG"),
        ({"STUB_GPUS": f"{FIRST},1,3,0,0"}, "energy counter of GPU-bbbb2222: Not Supported"),
        ({"STUB_GPUS": f"{FIRST},1,4,0,0"}, "energy counter of GPU-bbbb2222: Insufficient Perm"),
        ({"STUB_GPUS": f"{FIRST},1,0,4,0"}, "GPU 0: Insufficient Permissions"),
        ({"STUB_GPUS": BOTH, "STUB_INIT": "9"}, "NVML: Driver Not Loaded"),
        ({"STUB_GPUS": BOTH, "STUB_INIT": "18"}, "RM has detected an NVML/RM version mismatch"),
        ({"STUB_GPUS": ""}, "the driver has no GPU"),
        ({"STUB_GPUS": "GPU-c,00000000:01:00.0,vGPU,0,1,0,0,0"}, "GPU-c does not move"),
    ],
)
def test_what_cannot_be_measured_is_null_with_its_reason(
    library: Path, environment: dict[str, str], reason: str
) -> None:
    result = measure(library, **environment)
    assert joules(result) == [None, None, None]
    assert reason in result["report"]["reason"]
    assert result["report"]["source"] is None


def test_indices_of_unlike_cards_need_the_bus_order(library: Path) -> None:
    cards = f"{FIRST},1,0,0,0;GPU-dddd,00000000:1B:00.0,NVIDIA T4,70,1,0,0,0"
    unclear = measure(library, STUB_GPUS=cards, CUDA_VISIBLE_DEVICES="0")
    assert joules(unclear)[-1] is None
    assert "set CUDA_DEVICE_ORDER=PCI_BUS_ID" in unclear["report"]["reason"]
    clear = measure(
        library, STUB_GPUS=cards, CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID"
    )
    assert joules(clear)[-1] == pytest.approx(700, abs=0.01)


@pytest.mark.parametrize(("factor", "flagged"), [(1.1, True), (0.9, True), (1.04, False)])
def test_power_that_contradicts_the_counter_is_flagged(
    library: Path, factor: float, flagged: bool
) -> None:
    result = measure(library, STUB_GPUS=f"{FIRST},{factor},0,0,0")
    details = result["report"]["details"]
    assert details["differs_by_over_5_percent"] is flagged
    assert details["sampled_over_counted"] == pytest.approx(factor, abs=0.001)
    assert joules(result)[-1] == pytest.approx(6000, abs=0.01)
    assert result["readings"][-1]["sampled_j"] == pytest.approx(6000 * factor, rel=0.001)


def test_without_a_counter_the_samples_are_still_reported(library: Path) -> None:
    details = measure(library, STUB_GPUS=f"{FIRST},1,3,0,0")["report"]["details"]
    assert details["energy_j"] is None
    assert details["sampled_energy_j"] == pytest.approx(6000, abs=0.01)


def test_without_power_the_counter_stands_alone(library: Path) -> None:
    result = measure(library, STUB_GPUS=f"{FIRST},0,0,0,0", STUB_OLD_DRIVER="1")
    assert joules(result)[-1] == pytest.approx(6000, abs=0.01)
    details = result["report"]["details"]
    assert details["sampled_energy_j"] is None
    assert details["differs_by_over_5_percent"] is None
    assert "power of GPU-bbbb2222: Not Supported" in details["gpus"][0]["power_failure"]


def test_an_old_driver_has_average_power(library: Path) -> None:
    details = measure(library, STUB_GPUS=BOTH, STUB_OLD_DRIVER="1")["report"]["details"]
    assert details["gpus"][0]["power_kind"] == ["average"]
    assert details["sampled_energy_j"] == pytest.approx(7000, abs=0.01)


def test_a_card_this_process_may_not_open_is_not_counted(library: Path) -> None:
    result = measure(library, STUB_GPUS=f"{FIRST},1,0,4,0;{SECOND},1,0,0,0")
    assert joules(result)[-1] == pytest.approx(1000, abs=0.01)


def test_auto_takes_the_gpus_where_there_is_a_driver(library: Path) -> None:
    assert joules(measure(library, "auto", STUB_GPUS=BOTH))[-1] == pytest.approx(7000, abs=0.01)


def test_auto_without_a_gpu_driver_says_so_unless_the_cpu_can_be_measured(library: Path) -> None:
    result = measure(library, "auto", STUB_GPUS=BOTH, STUB_INIT="9")
    report = result["report"]
    if report["method"] == "none":
        assert report["reason"].startswith("nvml: NVML: Driver Not Loaded")
        assert "rapl: " in report["reason"]
        assert joules(result) == [None, None, None]
    else:
        assert report["method"] == "rapl"
