"""What a meter has seen of one GPU: counter, integrated power samples, clocks and throttling."""

from collections import Counter
from typing import Any

from bellman.energy.counter import EnergyCounter
from bellman.energy.nvml_driver import THROTTLE_REASONS, GpuState
from bellman.energy.visible_gpus import Gpu

SAMPLE_LASTS_S = 1.0
SAMPLE_PERIODS = 3.0
"""A power sample stands for so many periods, or for so long where that is longer."""
ABOVE_LIMIT = 1.2
"""Mean power over power limit, above which a unit must be wrong."""


class GpuLog:
    """The log of one GPU in one episode."""

    def __init__(self, gpu: Gpu, sample_period_s: float) -> None:
        self.gpu = gpu
        self._sample_lasts_s = max(SAMPLE_LASTS_S, SAMPLE_PERIODS * sample_period_s)
        self.counter = EnergyCounter()
        """Joules since the driver was loaded."""
        self.power_w: float | None = None
        """The last sample; None before the first."""
        self.idle_power_w: float | None = None
        self.failed_reads = 0
        self.first_failure: str | None = None
        self.power_failure: str | None = None
        """Why a power sample failed, the first time."""
        self._power_kinds: set[str] = set()
        self._samples: list[float] = []
        self._integral_j = 0.0
        self._integral = EnergyCounter()
        self._last_sample_s = 0.0
        self._states: list[GpuState] = []

    def read_failed(self, reason: str) -> None:
        """Note that the energy counter could not be read."""
        self.failed_reads += 1
        self.first_failure = self.first_failure or reason

    def add_power(self, time_s: float, power_w: float, kind: str) -> None:
        """Take a power sample; between two samples power is taken as a straight line."""
        if self.power_w is not None:
            mean_w = (self.power_w + power_w) / 2
            self._integral_j += mean_w * max(0.0, time_s - self._last_sample_s)
        self.power_w = power_w
        self._last_sample_s = time_s
        self._integral.add(time_s, self._integral_j)
        self._samples.append(power_w)
        self._power_kinds.add(kind)

    def power_failed(self, reason: str) -> None:
        """Note that power could not be sampled."""
        self.power_failure = self.power_failure or reason

    def add_state(self, state: GpuState) -> None:
        """Take clocks, temperature, limit and throttling."""
        self._states.append(state)

    def end_baseline(self) -> None:
        """Make what was sampled so far the idle baseline, and begin anew."""
        if self._samples:
            self.idle_power_w = sum(self._samples) / len(self._samples)
        self._samples = []
        self._integral_j = 0.0
        self._integral = EnergyCounter()
        self.power_w = None

    def sampled_j(self, time_s: float) -> float | None:
        """Return the integral of the samples up to `time_s`; None where the last is too old."""
        if self.power_w is None or time_s - self._last_sample_s > self._sample_lasts_s:
            return None
        more_j = self.power_w * max(0.0, time_s - self._last_sample_s)
        return self._integral.joules_at(time_s) + more_j

    def impossible_power(self, seconds: float) -> str | None:
        """Return why the counter cannot be right: it says more than the card may draw."""
        limits_w = [state.power_limit_w for state in self._states if state.power_limit_w]
        counted_j = self.counter.counted_j
        if not limits_w or counted_j is None or seconds <= 0:
            return None
        mean_w = counted_j / seconds
        if mean_w <= ABOVE_LIMIT * max(limits_w):
            return None
        return (
            f"the energy counter of {self.gpu.uuid} says {mean_w:.0f} W on average, above the "
            f"card's limit of {max(limits_w):.0f} W"
        )

    def summary(self) -> dict[str, Any]:
        """Return everything but the samples, for the report."""
        return {
            "uuid": self.gpu.uuid,
            "name": self.gpu.name,
            "pci_bus_id": self.gpu.pci_bus_id,
            "nvml_index": self.gpu.nvml_index,
            "counter_j": self.counter.counted_j,
            "counter_step_s": self.counter.step_s,
            "failed_reads": self.failed_reads,
            "first_failure": self.first_failure,
            "idle_power_w": self.idle_power_w,
            "power_w": spread(self._samples),
            "power_samples": len(self._samples),
            "power_kind": sorted(self._power_kinds),
            "power_failure": self.power_failure,
            "power_limit_w": spread([state.power_limit_w for state in self._states]),
            "sm_clock_mhz": spread([state.sm_clock_mhz for state in self._states]),
            "memory_clock_mhz": spread([state.memory_clock_mhz for state in self._states]),
            "temperature_c": spread([state.temperature_c for state in self._states]),
            "throttled_share": self._throttled_share(),
        }

    def _throttled_share(self) -> dict[str, float] | None:
        """Share of the states in which each reason held back the clocks; None where unknown."""
        known = [
            state.throttle_reasons for state in self._states if state.throttle_reasons is not None
        ]
        if not known:
            return None
        counts = Counter(
            name for bits in known for bit, name in THROTTLE_REASONS.items() if bits & bit
        )
        return {name: count / len(known) for name, count in counts.items()}


def spread(values: list[Any]) -> dict[str, float] | None:
    """Return min, mean and max of the known values; None if there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"min": min(known), "mean": sum(known) / len(known), "max": max(known)}
