import pytest

from bellman.energy.visible_gpus import Ambiguous, Gpu, visible_gpus

GPUS = [
    Gpu(0, "GPU-b1", "00000000:9A:00.0", "H100", False),
    Gpu(1, "GPU-b2", "00000000:1B:00.0", "H100", False),
    Gpu(2, "GPU-c3", "00000001:05:00.0", "H100", False),
]


@pytest.mark.parametrize(
    ("wanted", "nvml_indices"),
    [
        (None, [1, 0, 2]),
        ("0", [1]),
        ("2,0", [2, 1]),
        (" 1 , GPU-c3 ", [0, 2]),
        ("GPU-c", [2]),
        ("0,2,-1,1", [1, 2]),  # NVIDIA's own example
        ("0,GPU-b,1", [1]),  # a beginning that two cards share is invalid
        ("0,0,1", [1]),
    ],
)
def test_known_selections(wanted: str | None, nvml_indices: list[int]) -> None:
    environment = {} if wanted is None else {"CUDA_VISIBLE_DEVICES": wanted}
    chosen = visible_gpus(GPUS, environment)
    assert [gpu.nvml_index for gpu in chosen] == nvml_indices


@pytest.mark.parametrize("wanted", ["", "3", "GPU-x", "NoDevFiles", "1.0"])
def test_nothing_visible(wanted: str) -> None:
    with pytest.raises(Ambiguous, match="no GPU is visible"):
        visible_gpus(GPUS, {"CUDA_VISIBLE_DEVICES": wanted})
