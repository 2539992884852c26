"""One episode's NVML meter: counters and power of its cards, asked in a thread of its own."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from bellman.energy.base import EnergyReading, EnergyReport, Incident, LocalServer
from bellman.energy.counter import CounterWentBack
from bellman.energy.gpu_log import GpuLog
from bellman.energy.incident_log import IncidentLog
from bellman.energy.nvml_driver import Driver, DriverError
from bellman.energy.nvml_sweep import Answer, sweep
from bellman.energy.own_thread import NoAnswer, OwnThread
from bellman.energy.server_gpus import Choice, Neighbours

TOLERATED_DIFFERENCE = 0.05
"""Counter and integrated samples may differ by so much; more is flagged."""
MOVES_WITHIN_S = 1.0
"""Counters move several times a second; one that stands still, as on virtual GPUs, is none."""
STATE_EVERY = 10
"""Clocks, throttling and other processes are looked at once in so many samples."""
DEADLINE_S = 2.0
"""A reading may take so long, with all tries; later it is null."""
RETRY_S = 0.05
SLOW_S = 0.5
"""An answer that takes longer is noted."""


class NvmlMeter:
    """Sums the counters of its cards. The event loop waits for the driver's answers, never in it.

    A reading is for the instant of the call: a straight line between the counter before it and the
    first one after it.
    """

    def __init__(
        self,
        thread: OwnThread,
        driver: Driver,
        choice: Choice,
        *,
        server: LocalServer | None,
        sample_period_s: float,
        idle_baseline_s: float,
    ) -> None:
        self._sample_period_s = sample_period_s
        self._idle_baseline_s = idle_baseline_s
        self._thread = thread
        self._driver = driver
        self._choice = choice
        self._neighbours = Neighbours(driver, choice, server)
        self._logs = [GpuLog(gpu, sample_period_s) for gpu in choice.gpus]
        self._log = IncidentLog()
        self._sampler: asyncio.Task[None] | None = None
        self._failure: str | None = None
        """Why the energy is unknown for good."""
        self._problem = "no answer"
        """Why the last counter could not be read."""
        self._longest_call_s = 0.0
        self._began_s = 0.0
        self._looked_s = 0.0
        """When other processes were last looked for."""
        self._good: list[EnergyReading] = []
        """The first and the last reading that has energy."""
        self._readings: list[EnergyReading] = []
        """The first and the last reading."""

    async def start(self) -> None:
        """Measure the idle baseline, then begin to count and to sample."""
        loop = asyncio.get_running_loop()
        if self._choice.doubt is not None:
            self._log.note_whole_episode(self._choice.doubt)
        end_s = loop.time() + self._idle_baseline_s
        await self._sweep(with_power=True)
        while loop.time() < end_s:
            await asyncio.sleep(self._sample_period_s)
            await self._sweep(with_power=True)
        for log in self._logs:
            log.end_baseline()
        await self._sweep(with_power=True, with_state=True)
        self._looked_s = loop.time()
        await self._look_around()
        for log in self._logs:
            log.counter.begin()
        self._began_s = loop.time()
        self._sampler = asyncio.create_task(self._sample_periodically())

    async def read(self) -> EnergyReading:
        """Return joules from the start to this instant; None where a counter cannot be read."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        reason = await self._read_counters_past(now_s)
        for log in self._logs:
            if reason is None and log.counter.still_s > MOVES_WITHIN_S:
                reason = f"nvml: the energy counter of {log.gpu.uuid} does not move"
        joules = None
        if reason is None:
            joules = sum(log.counter.joules_at(now_s) for log in self._logs)
        reading = EnergyReading(
            time_s=now_s,
            energy_j=joules,
            power_w=_sum([log.power_w for log in self._logs]),
            sampled_j=_sum([log.sampled_j(now_s) for log in self._logs]),
            uncertain_s=max(log.counter.step_s for log in self._logs),
            reason=reason,
        )
        self._readings[1:] = [reading]
        if joules is not None:
            self._good[1:] = [reading]
        return reading

    async def stop(self) -> EnergyReport:
        """End sampling; report counter and samples between the first and the last good reading."""
        loop = asyncio.get_running_loop()
        if self._sampler is not None:
            self._sampler.cancel()
            await asyncio.gather(self._sampler, return_exceptions=True)
            await self._look_around()
        with suppress(NoAnswer, DriverError):
            await self._thread.call(self._driver.close, deadline_s=DEADLINE_S)
        self._thread.shutdown()
        for log in self._logs:
            impossible = log.impossible_power(loop.time() - self._began_s)
            if impossible is not None:
                self._log.note_whole_episode(impossible)
        counted_j = _difference(self._good, "energy_j")
        sampled_j = _difference(self._good or self._readings, "sampled_j")
        ratio = sampled_j / counted_j if counted_j and sampled_j is not None else None
        never = None if self._good else "nvml: never read"
        if self._readings and not self._good:
            never = self._readings[-1].reason
        reasons = [
            reason for reason in [self._failure or never, *self._log.whole_episode()] if reason
        ]
        return EnergyReport(
            method="nvml",
            source="measured" if self._good else None,
            reason="; ".join(reasons) or None,
            details={
                "driver": self._driver.version,
                "cards_chosen_by": self._choice.chosen_by,
                **self._choice.environment,
                "energy_j": counted_j,
                "sampled_energy_j": sampled_j,
                "sampled_over_counted": ratio,
                "differs_by_over_5_percent": (
                    None if ratio is None else abs(ratio - 1) > TOLERATED_DIFFERENCE
                ),
                "sample_period_s": self._sample_period_s,
                "longest_call_s": self._longest_call_s,
                "idle_baseline_s": self._idle_baseline_s,
                "idle_power_w": _sum([log.idle_power_w for log in self._logs]),
                "incidents": self._log.described(self._began_s),
                "gpus": [log.summary() for log in self._logs],
            },
        )

    def incidents(self) -> Sequence[Incident]:
        """Return failed, slow and hanging calls, still counters, other processes on the cards."""
        return self._log.incidents

    async def _read_counters_past(self, time_s: float) -> str | None:
        """Read until every counter was read at or after `time_s`; return why that fails."""
        loop = asyncio.get_running_loop()
        end_s = time_s + DEADLINE_S
        while self._failure is None:
            await self._sweep(with_power=False, deadline_s=max(RETRY_S, end_s - loop.time()))
            read_s = [log.counter.last_s for log in self._logs]
            if all(last_s is not None and last_s >= time_s for last_s in read_s):
                break
            if loop.time() >= end_s:
                return f"nvml: {self._problem}"
            await asyncio.sleep(RETRY_S)
        return self._failure

    async def _sample_periodically(self) -> None:
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        tick = 0
        try:
            while True:
                tick = max(tick + 1, int((loop.time() - start_s) / self._sample_period_s))
                await asyncio.sleep(start_s + tick * self._sample_period_s - loop.time())
                special = tick % STATE_EVERY == 0
                await self._sweep(with_power=True, with_state=special)
                if special:
                    await self._look_around()
        except Exception as error:  # whatever it is, the readings go on, and say so
            text = f"nvml: power is not sampled any more: {type(error).__name__}: {error}"
            self._log.note(text, loop.time(), float("inf"))

    async def _sweep(
        self, *, with_power: bool, with_state: bool = False, deadline_s: float | None = None
    ) -> None:
        """Ask the driver once, and note what it says or that it does not."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        gpus = self._choice.gpus
        try:
            answers = await self._thread.call(
                *(sweep, self._driver, gpus, loop.time, with_power, with_state),
                deadline_s=DEADLINE_S if deadline_s is None else deadline_s,
            )
        except NoAnswer:
            self._problem = "the driver does not answer"
            self._log.note(f"nvml: {self._problem}", began_s, loop.time())
            return
        except Exception as error:  # a fault in the program ends the reading, not the episode
            self._fail(f"{type(error).__name__}: {error}")
            return
        for log, answer in zip(self._logs, answers, strict=True):
            self._take(log, answer)

    def _take(self, log: GpuLog, answer: Answer) -> None:
        """Note one card's answer."""
        began_s, ended_s = answer.counter_s, answer.counter_s + answer.took_s
        self._longest_call_s = max(self._longest_call_s, answer.took_s)
        if answer.took_s > SLOW_S:
            text = f"nvml: {log.gpu.uuid} takes more than {SLOW_S:g} s to answer"
            self._log.note(text, began_s, ended_s)
        if isinstance(answer.counter_j, DriverError):
            log.read_failed(str(answer.counter_j))
            self._problem = str(answer.counter_j)
            self._log.note(f"nvml: {answer.counter_j}", began_s, ended_s)
            if answer.counter_j.permanent:
                self._fail(str(answer.counter_j))
        else:
            try:
                log.counter.add(answer.counter_s, answer.counter_j)
            except CounterWentBack as error:
                why = "the driver was loaded anew, or the card reset"
                self._fail(f"the energy counter of {log.gpu.uuid} {error}: {why}")
            if log.counter.still_s > MOVES_WITHIN_S:
                text = f"nvml: the energy counter of {log.gpu.uuid} does not move"
                self._log.note(text, answer.counter_s - log.counter.still_s, answer.counter_s)
        if isinstance(answer.power, DriverError):
            if log.power_w is not None:  # where it never was there is no cross-check to miss
                self._log.note(f"nvml: {answer.power}, no cross-check", began_s, ended_s)
            log.power_failed(str(answer.power))
        elif answer.power is not None:
            log.add_power(answer.power_s, *answer.power)
        if answer.state is not None:
            log.add_state(answer.state)

    async def _look_around(self) -> None:
        """Note who else is on the cards."""
        loop = asyncio.get_running_loop()
        try:
            seen = await self._thread.call(self._neighbours.seen, deadline_s=DEADLINE_S)
        except NoAnswer:
            return  # the next sweep notes it
        except Exception as error:
            seen = [f"nvml: no other processes are looked for: {type(error).__name__}: {error}"]
        for text in seen:
            self._log.note(text, self._looked_s, loop.time())
        self._looked_s = loop.time()

    def _fail(self, reason: str) -> None:
        """Note the first reason why the energy is unknown; it stays so."""
        self._failure = self._failure or f"nvml: {reason}"


def _sum(values: Sequence[float | None]) -> float | None:
    """Add up; one unknown makes the sum unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _difference(readings: Sequence[EnergyReading], name: str) -> float | None:
    """Return by how much something grew from the first to the last of two or more readings."""
    if len(readings) < 2:
        return None
    first, last = getattr(readings[0], name), getattr(readings[-1], name)
    return None if first is None or last is None else last - first
