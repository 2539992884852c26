"""Energy of NVIDIA GPUs: the driver's energy counter, and power samples as its cross-check."""

import asyncio
import os
from dataclasses import dataclass

from bellman.energy.base import EnergyMeter, EnergyReading, EnergyReport
from bellman.energy.gpu_log import CounterWentBack, GpuLog
from bellman.energy.none import UnmeasuredEnergy
from bellman.energy.nvml_driver import Driver, DriverError, GpuState
from bellman.energy.visible_gpus import ORDER, VISIBLE, Ambiguous, Gpu, visible_gpus
from bellman.errors import require

TOLERATED_DIFFERENCE = 0.05
"""Counter and integrated samples may differ by so much; more is flagged."""
MOVES_WITHIN_S = 1.0
"""Counters move several times a second; one that stands still, as on virtual GPUs, is none."""
STATE_EVERY = 10
"""Clocks, temperature and throttling are logged once in so many power samples."""


@dataclass(frozen=True)
class NvmlEnergy:
    """Meter the GPUs that CUDA_VISIBLE_DEVICES names, all if it is not set."""

    sample_period_s: float
    """Seconds between two power samples."""
    idle_baseline_s: float
    """How long idle power is measured before each arm; 0 leaves it out."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(
            self.sample_period_s > 0,
            "energy.sample_period_s",
            self.sample_period_s,
            "must exceed 0",
        )
        require(
            self.idle_baseline_s >= 0,
            "energy.idle_baseline_s",
            self.idle_baseline_s,
            "must be 0 or more",
        )

    def create(self) -> EnergyMeter:
        """Return the meter for one episode; one that measures nothing where NVML cannot."""
        try:
            return open_meter(self)
        except (DriverError, Ambiguous) as error:
            return UnmeasuredEnergy(f"nvml: {error}")


def open_meter(config: NvmlEnergy) -> "NvmlMeter":
    """Open the driver and pick the cards; raises `DriverError` or `Ambiguous`."""
    driver = Driver()
    try:
        return NvmlMeter(config, driver, visible_gpus(driver.gpus(), os.environ))
    except (DriverError, Ambiguous):
        driver.close()
        raise


class NvmlMeter:
    """Sums the counters of its GPUs; samples power in the background, off the event loop."""

    def __init__(self, config: NvmlEnergy, driver: Driver, gpus: list[Gpu]) -> None:
        self._config = config
        self._driver = driver
        self._logs = [GpuLog(gpu) for gpu in gpus]
        self._sampler: asyncio.Task[None] | None = None
        self._failure: str | None = None
        self._first: EnergyReading | None = None
        self._last: EnergyReading | None = None

    async def start(self) -> None:
        """Measure the idle baseline, then begin to count and to sample."""
        loop = asyncio.get_running_loop()
        before_j = [self._read_counter(log) for log in self._logs]
        end_s = loop.time() + self._config.idle_baseline_s
        while self._config.idle_baseline_s > 0 and loop.time() < end_s:
            await self._sample(with_state=False)
            await asyncio.sleep(self._config.sample_period_s)
        for log in self._logs:
            log.end_baseline()
        await self._sample(with_state=True)
        for log, joules in zip(self._logs, before_j, strict=True):
            now_j = self._read_counter(log)
            if (
                now_j is not None
                and now_j == joules
                and self._config.idle_baseline_s >= MOVES_WITHIN_S
            ):
                self._fail(f"the energy counter of {log.gpu.uuid} does not move")
            log.begin_counting()
        self._sampler = asyncio.create_task(self._sample_periodically())

    def read(self) -> EnergyReading:
        """Return joules since the start; None once any GPU's counter has failed."""
        now_s = asyncio.get_running_loop().time()
        joules = [self._read_counter(log) for log in self._logs]
        sampled = [log.sampled_j(now_s) for log in self._logs]
        power = [log.power_w for log in self._logs]
        reading = EnergyReading(
            time_s=now_s,
            energy_j=_sum(joules) if self._failure is None else None,
            power_w=_sum(power),
            sampled_j=_sum(sampled),
        )
        self._first = self._first or reading
        self._last = reading
        return reading

    async def stop(self) -> EnergyReport:
        """End sampling; report counter and samples between the first and the last reading."""
        if self._sampler is not None:
            self._sampler.cancel()
            await asyncio.gather(self._sampler, return_exceptions=True)
        self._driver.close()
        counted_j = sampled_j = None
        if self._first is not None and self._last is not None:
            counted_j = _difference(self._first.energy_j, self._last.energy_j)
            sampled_j = _difference(self._first.sampled_j, self._last.sampled_j)
        ratio = sampled_j / counted_j if counted_j and sampled_j is not None else None
        return EnergyReport(
            method="nvml",
            source=None if counted_j is None else "measured",
            reason=self._failure or (None if self._first else "nvml: never read"),
            details={
                "driver": self._driver.version,
                VISIBLE: os.environ.get(VISIBLE),
                ORDER: os.environ.get(ORDER),
                "energy_j": counted_j,
                "sampled_energy_j": sampled_j,
                "sampled_over_counted": ratio,
                "differs_by_over_5_percent": (
                    None if ratio is None else abs(ratio - 1) > TOLERATED_DIFFERENCE
                ),
                "sample_period_s": self._config.sample_period_s,
                "idle_baseline_s": self._config.idle_baseline_s,
                "idle_power_w": _sum([log.idle_power_w for log in self._logs]),
                "gpus": [log.summary() for log in self._logs],
            },
        )

    async def _sample_periodically(self) -> None:
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        tick = 0
        while True:
            tick = max(tick + 1, int((loop.time() - start_s) / self._config.sample_period_s))
            await asyncio.sleep(start_s + tick * self._config.sample_period_s - loop.time())
            await self._sample(with_state=tick % STATE_EVERY == 0)

    async def _sample(self, with_state: bool) -> None:
        """Ask the driver, which may take milliseconds, in a thread; note the answers here."""
        now_s = asyncio.get_running_loop().time()
        answers = await asyncio.to_thread(self._ask, with_state)
        for log, answer in zip(self._logs, answers, strict=True):
            if isinstance(answer, DriverError):
                log.power_failed(str(answer))
                continue
            (power_w, kind), state = answer
            log.add_power(now_s, power_w, kind)
            if state is not None:
                log.add_state(state)

    def _ask(
        self, with_state: bool
    ) -> list[tuple[tuple[float, str], GpuState | None] | DriverError]:
        return [self._ask_gpu(log.gpu, with_state) for log in self._logs]

    def _ask_gpu(
        self, gpu: Gpu, with_state: bool
    ) -> tuple[tuple[float, str], GpuState | None] | DriverError:
        try:
            return self._driver.power_w(gpu), self._driver.state(gpu) if with_state else None
        except DriverError as error:
            return error

    def _read_counter(self, log: GpuLog) -> float | None:
        try:
            return log.add_counter(self._driver.energy_j(log.gpu))
        except (DriverError, CounterWentBack) as error:
            self._fail(str(error))
            return None

    def _fail(self, reason: str) -> None:
        """Note the first reason why the energy is unknown; it stays so."""
        self._failure = self._failure or f"nvml: {reason}"


def _sum(values: list[float | None]) -> float | None:
    """Add up; one unknown makes the sum unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before
