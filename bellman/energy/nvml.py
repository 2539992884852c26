"""Energy of NVIDIA GPUs: the driver's energy counter, and power samples as its cross-check."""

from bellman.energy.base import EnergyMeter, LocalServer
from bellman.energy.none import UnmeasuredEnergy
from bellman.energy.nvml_driver import Driver, DriverError
from bellman.energy.nvml_meter import NvmlMeter
from bellman.energy.own_thread import NoAnswer, OwnThread
from bellman.energy.server_gpus import Choice, choose
from bellman.energy.visible_gpus import Ambiguous
from bellman.schema import NotNegative, Positive, schema

OPEN_DEADLINE_S = 60.0
"""Without its persistence daemon a driver wakes its cards one after the other: seconds each."""


@schema
class NvmlEnergy:
    """Meter the GPUs that the server's processes use, else those of CUDA_VISIBLE_DEVICES."""

    sample_period_s: Positive
    """Seconds between two samples of counter and power."""
    idle_baseline_s: NotNegative
    """How long idle power is measured before each arm; 0 leaves it out."""

    async def create(self, server: LocalServer | None) -> EnergyMeter:
        """Return the meter for one episode; one that measures nothing where NVML cannot."""
        try:
            return await open_meter(self, server)
        except (DriverError, Ambiguous, NoAnswer) as error:
            return UnmeasuredEnergy(f"nvml: {error}")


async def open_meter(config: NvmlEnergy, server: LocalServer | None) -> NvmlMeter:
    """Open the driver and pick the cards; raises `DriverError`, `Ambiguous` or `NoAnswer`."""
    thread = OwnThread("nvml")
    try:
        driver, choice = await thread.call(open_driver, server, deadline_s=OPEN_DEADLINE_S)
    except BaseException as error:
        thread.shutdown()
        if isinstance(error, NoAnswer):
            raise NoAnswer(f"the driver does not open its cards: {error}") from None
        raise
    return NvmlMeter(
        thread,
        driver,
        choice,
        server=server,
        sample_period_s=config.sample_period_s,
        idle_baseline_s=config.idle_baseline_s,
    )


def open_driver(server: LocalServer | None) -> tuple[Driver, Choice]:
    """Open the driver and pick the cards; raises `DriverError` or `Ambiguous`."""
    driver = Driver()
    try:
        return driver, choose(driver, server)
    except (DriverError, Ambiguous):
        driver.close()
        raise
