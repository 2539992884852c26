"""Picks the meter: GPUs where an NVIDIA driver is, else CPU packages, else none and why."""

from dataclasses import dataclass

from bellman.energy.base import EnergyMeter
from bellman.energy.none import UnmeasuredEnergy
from bellman.energy.nvml import NvmlEnergy
from bellman.energy.nvml_driver import Driver, DriverError
from bellman.energy.rapl import RaplEnergy


@dataclass(frozen=True)
class AutoEnergy:
    """Whatever the machine has."""

    sample_period_s: float
    """Seconds between two power samples of a GPU."""
    idle_baseline_s: float
    """How long idle power is measured before each arm; 0 leaves it out."""

    def __post_init__(self) -> None:
        """Check the ranges as the meters do."""
        self._nvml()
        self._rapl()

    def _nvml(self) -> NvmlEnergy:
        return NvmlEnergy(self.sample_period_s, self.idle_baseline_s)

    def _rapl(self) -> RaplEnergy:
        return RaplEnergy(self.idle_baseline_s)

    def create(self) -> EnergyMeter:
        """Return the meter for one episode."""
        try:
            Driver().close()
        except DriverError as no_driver:
            meter = self._rapl().create()
            if isinstance(meter, UnmeasuredEnergy):
                return UnmeasuredEnergy(f"nvml: {no_driver}; {meter.reason}")
            return meter
        # With a driver a GPU is meant: the CPU's energy would not stand in for it.
        return self._nvml().create()
