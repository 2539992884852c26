"""What a meter has seen of one GPU: counter, integrated power samples, clocks and throttling."""

from collections import Counter
from typing import Any

from bellman.energy.nvml_driver import THROTTLE_REASONS, GpuState
from bellman.energy.visible_gpus import Gpu


class CounterWentBack(Exception):
    """An energy counter is lower than before."""


class GpuLog:
    """The log of one GPU in one episode."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.power_w: float | None = None
        """The last sample; None before the first and after a failure."""
        self.idle_power_w: float | None = None
        self._power_failure: str | None = None
        self._power_kinds: set[str] = set()
        self._samples: list[float] = []
        self._integral_j = 0.0
        self._last_sample_s = 0.0
        self._first_counter_j: float | None = None
        self._last_counter_j: float | None = None
        self._states: list[GpuState] = []

    def add_counter(self, counter_j: float) -> float:
        """Take the energy counter and return joules since counting began.

        Raises `CounterWentBack`: the driver was loaded anew in between.
        """
        if self._first_counter_j is None:
            self._first_counter_j = counter_j
        if self._last_counter_j is not None and counter_j < self._last_counter_j:
            raise CounterWentBack(f"the energy counter of {self.gpu.uuid} went back")
        self._last_counter_j = counter_j
        return counter_j - self._first_counter_j

    def begin_counting(self) -> None:
        """Count from the counter last taken."""
        self._first_counter_j = self._last_counter_j

    def add_power(self, now_s: float, power_w: float, kind: str) -> None:
        """Take a power sample; between two samples power is taken as a straight line."""
        if self.power_w is not None:
            mean_w = (self.power_w + power_w) / 2
            self._integral_j += mean_w * (now_s - self._last_sample_s)
        self.power_w = power_w
        self._last_sample_s = now_s
        self._samples.append(power_w)
        self._power_kinds.add(kind)

    def power_failed(self, reason: str) -> None:
        """Note that power cannot be sampled: from now on the integral is unknown."""
        self._power_failure = self._power_failure or reason
        self.power_w = None

    def add_state(self, state: GpuState) -> None:
        """Take clocks, temperature, limit and throttling."""
        self._states.append(state)

    def end_baseline(self) -> None:
        """Make what was sampled so far the idle baseline, and begin anew."""
        if self._samples:
            self.idle_power_w = sum(self._samples) / len(self._samples)
        self._samples = []
        self._integral_j = 0.0
        self.power_w = None

    def sampled_j(self, now_s: float) -> float | None:
        """Return the integral of the samples up to `now_s`; None once a sample has failed."""
        if self._power_failure is not None or self.power_w is None:
            return None
        return self._integral_j + self.power_w * max(0.0, now_s - self._last_sample_s)

    def summary(self) -> dict[str, Any]:
        """Return everything but the samples, for the report."""
        return {
            "uuid": self.gpu.uuid,
            "name": self.gpu.name,
            "pci_bus_id": self.gpu.pci_bus_id,
            "nvml_index": self.gpu.nvml_index,
            "counter_j": (
                None
                if self._first_counter_j is None or self._last_counter_j is None
                else self._last_counter_j - self._first_counter_j
            ),
            "idle_power_w": self.idle_power_w,
            "power_w": spread(self._samples),
            "power_samples": len(self._samples),
            "power_kind": sorted(self._power_kinds),
            "power_failure": self._power_failure,
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
