"""What the meter asks the NVIDIA driver for, through `pynvml` (package nvidia-ml-py)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pynvml

from bellman.energy.visible_gpus import Gpu

Value = TypeVar("Value")

THROTTLE_REASONS = {
    0x1: "gpu idle",
    0x2: "applications clocks setting",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake slowdown",
    0x100: "display clock setting",
}
"""nvmlClocksEventReasons, bit by bit."""


PERMANENT = {
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    pynvml.NVML_ERROR_GPU_NOT_FOUND,
}
"""Errors that asking again does not mend."""


class DriverError(Exception):
    """The driver cannot answer; says what was asked and why not."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class NoDriver(DriverError):
    """There is no driver that answers at all."""


@dataclass(frozen=True, slots=True)
class GpuState:
    """Slowly changing facts; None where the card does not tell."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_c: int | None
    power_limit_w: float | None
    throttle_reasons: int | None
    """Bits of `THROTTLE_REASONS`."""


class Driver:
    """An open connection to the driver."""

    def __init__(self) -> None:
        """Open it; raises `NoDriver` where there is none."""
        try:
            _ask("NVML", pynvml.nvmlInit)
        except DriverError as error:
            raise NoDriver(str(error)) from None
        self.version: str = _ask("driver version", pynvml.nvmlSystemGetDriverVersion)

    def close(self) -> None:
        """Close it."""
        pynvml.nvmlShutdown()

    def gpus(self) -> list[Gpu]:
        """Return the cards this process may open; raises `DriverError` if it may open none."""
        gpus = []
        refusal = None
        for index in range(_ask("GPU count", pynvml.nvmlDeviceGetCount)):
            try:
                gpus.append(self._gpu(index))
            except DriverError as error:
                # CUDA does not see a card either that this process may not open.
                refusal = error
        if refusal is not None and not gpus:
            raise refusal
        return gpus

    def _gpu(self, index: int) -> Gpu:
        handle = self._handle(index)
        mig, _ = _or_none(pynvml.nvmlDeviceGetMigMode, handle) or (0, 0)
        return Gpu(
            nvml_index=index,
            uuid=_ask(f"GPU {index}: UUID", pynvml.nvmlDeviceGetUUID, handle),
            pci_bus_id=_text(
                _ask(f"GPU {index}: PCI bus", pynvml.nvmlDeviceGetPciInfo, handle).busId
            ),
            name=_ask(f"GPU {index}: name", pynvml.nvmlDeviceGetName, handle),
            mig=mig == pynvml.NVML_DEVICE_MIG_ENABLE,
        )

    def _handle(self, index: int) -> Any:
        return _ask(f"GPU {index}", pynvml.nvmlDeviceGetHandleByIndex, index)

    def energy_j(self, gpu: Gpu) -> float:
        """Return joules since the driver was loaded; raises `DriverError`.

        The counter is of 64 bits in millijoules, which never wraps; cards before Volta have none.
        """
        handle = self._handle(gpu.nvml_index)
        what = f"energy counter of {gpu.uuid}"
        return float(_ask(what, pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)) / 1000

    def power_w(self, gpu: Gpu) -> tuple[float, str]:
        """Return the power now, and whether it is `instant` or a one-second `average`.

        The classic query is an average from Ampere on; the instant one needs a driver of 2023.
        Raises `DriverError`.
        """
        handle = self._handle(gpu.nvml_index)
        fields = _or_none(
            pynvml.nvmlDeviceGetFieldValues, handle, [pynvml.NVML_FI_DEV_POWER_INSTANT]
        )
        if fields is not None and fields[0].nvmlReturn == pynvml.NVML_SUCCESS:
            return fields[0].value.uiVal / 1000, "instant"
        what = f"power of {gpu.uuid}"
        return float(_ask(what, pynvml.nvmlDeviceGetPowerUsage, handle)) / 1000, "average"

    def processes(self, gpu: Gpu) -> frozenset[int]:
        """Return the ids of the processes on a card: CUDA, under MPS, and graphics.

        They are those of the machine, or of this container, or hidden, as driver and container
        will. Raises `DriverError` where CUDA's cannot be listed.
        """
        handle = self._handle(gpu.nvml_index)
        found = _or_none(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
        if found is None:  # the name before driver 510
            older = pynvml.nvmlDeviceGetComputeRunningProcesses_v2
            found = _ask(f"processes of {gpu.uuid}", older, handle)
        for more in (
            pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
            pynvml.nvmlDeviceGetGraphicsRunningProcesses,
        ):
            found = [*found, *(_or_none(more, handle) or [])]
        return frozenset(int(process.pid) for process in found)

    def state(self, gpu: Gpu) -> GpuState:
        """Return clocks, temperature, limit and throttling."""
        handle = self._handle(gpu.nvml_index)
        limit_mw = _or_none(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        reasons = _or_none(pynvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
        if reasons is None:  # the name before driver 535
            reasons = _or_none(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        return GpuState(
            sm_clock_mhz=_or_none(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
            memory_clock_mhz=_or_none(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_MEM),
            temperature_c=_or_none(
                pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU
            ),
            power_limit_w=None if limit_mw is None else limit_mw / 1000,
            throttle_reasons=reasons,
        )


def _ask(what: str, query: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return query(*arguments)
    except pynvml.NVMLError as error:
        message = f"{what}: {str(error).rstrip('.')} (NVML error {error.value})"
        raise DriverError(message, permanent=error.value in PERMANENT) from None
    except Exception as error:  # a library that answers what the bindings cannot read
        raise DriverError(f"{what}: {type(error).__name__}: {error}") from None


def _or_none(query: Callable[..., Value], *arguments: Any) -> Value | None:
    try:
        return query(*arguments)
    except Exception:  # what is only told besides may be missing, whatever the reason
        return None


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
