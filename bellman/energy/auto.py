"""Picks the meter: GPUs where an NVIDIA driver is, else CPU packages, else none and why."""

from bellman.energy.base import EnergyMeter, LocalServer
from bellman.energy.none import UnmeasuredEnergy
from bellman.energy.nvml import NvmlEnergy, open_meter
from bellman.energy.nvml_driver import DriverError, NoDriver
from bellman.energy.own_thread import NoAnswer
from bellman.energy.rapl import RaplEnergy
from bellman.energy.visible_gpus import Ambiguous
from bellman.schema import NotNegative, Positive, schema


@schema
class AutoEnergy:
    """Whatever the machine has."""

    sample_period_s: Positive
    """Seconds between two samples of a GPU."""
    idle_baseline_s: NotNegative
    """How long idle power is measured before each arm; 0 leaves it out."""

    def _nvml(self) -> NvmlEnergy:
        return NvmlEnergy(self.sample_period_s, self.idle_baseline_s)

    def _rapl(self) -> RaplEnergy:
        return RaplEnergy(self.idle_baseline_s)

    async def create(self, server: LocalServer | None) -> EnergyMeter:
        """Return the meter for one episode."""
        try:
            return await open_meter(self._nvml(), server)
        except NoDriver as no_driver:
            meter = await self._rapl().create(server)
            if isinstance(meter, UnmeasuredEnergy):
                return UnmeasuredEnergy(f"nvml: {no_driver}; {meter.reason}")
            return meter
        except (DriverError, Ambiguous, NoAnswer) as error:
            # With a driver a GPU is meant: the CPU's energy would not stand in for it.
            return UnmeasuredEnergy(f"nvml: {error}")
