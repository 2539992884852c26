"""The timeline of an episode: load, level, budget and energy, once a period and at phase edges."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellman.app.summarization import SummarizationApp
from bellman.energy.base import EnergyMeter, EnergyReading, EnergyReport, Incident
from bellman.engines.base import EngineSession, ServerState
from bellman.engines.routed.session import RoutedSession
from bellman.load.schedule import Phase
from bellman.records import DRAIN, WARMUP, TimelineRow
from bellman.source import Source

DISAGREEMENT = 0.05
"""Share by which an energy counter and power samples may differ before the window is flagged."""
STANDS_STILL = "the energy counter stands still"
UNREAD = "the meter gave no reading"


@dataclass(frozen=True, slots=True)
class EnergyWindow:
    """Energy of one phase, from the cumulative readings at its edges."""

    repeat: int
    arm: str
    window: str
    start_s: float
    end_s: float
    energy_j: float | None
    mean_power_w: float | None
    sampled_j: float | None
    """A second opinion on `energy_j`, from power samples, where the meter takes them."""
    source: Source | None
    method: str
    reason: str | None
    """Why there is no energy, or why to distrust it."""
    replicas_j: dict[str, float | None] | None = None
    """Of several engines each one's part of `energy_j`; None where there is one."""


def phase_at(phases: Sequence[Phase], time_s: float) -> str:
    """Return the name of the phase at `time_s`; `drain` after the last."""
    for phase in phases:
        if phase.start_s <= time_s < phase.end_s:
            return phase.name
    return DRAIN


class Timeline:
    """Samples the server and the meter, and hands each row on as it is taken."""

    def __init__(
        self,
        session: EngineSession,
        app: SummarizationApp,
        meter: EnergyMeter,
        phases: Sequence[Phase],
        *,
        repeat: int,
        arm: str,
        source: Source,
        on_row: Callable[[TimelineRow], None],
    ) -> None:
        self._session = session
        self._app = app
        self._meter = meter
        self._phases = phases
        self._repeat = repeat
        self._arm = arm
        self._source = source
        self._on_row = on_row
        self._start_s = asyncio.get_running_loop().time()
        self._last_reading: EnergyReading | None = None

    async def run(self, period_s: float) -> None:
        """Sample at once and then every `period_s`, until cancelled."""
        loop = asyncio.get_running_loop()
        tick = 0
        while True:
            await asyncio.sleep(self._start_s + tick * period_s - loop.time())
            await self.sample()
            tick = max(tick + 1, int((loop.time() - self._start_s) / period_s))

    async def sample(self) -> None:
        """Take one row now; of several engines one more for each."""
        session, replicas = self._session, dict[str, ServerState]()
        if isinstance(session, RoutedSession):
            replicas = await session.states()
            state = session.combined(replicas.values())
        else:
            state = await session.state()
        reading, before = await self._meter.read(), self._last_reading
        self._last_reading = reading
        self._on_row(self._row(state, reading, before))
        for name, its_state in replicas.items() if len(replicas) > 1 else ():
            its_before = None if before is None else part_of(before, name)
            self._on_row(self._row(its_state, part_of(reading, name), its_before, name))

    def _row(
        self,
        state: ServerState,
        reading: EnergyReading,
        before: EnergyReading | None,
        replica: str | None = None,
    ) -> TimelineRow:
        time_s = reading.time_s - self._start_s
        observation = state.observation
        return TimelineRow(
            repeat=self._repeat,
            arm=self._arm,
            time_s=time_s,
            phase=phase_at(self._phases, time_s),
            source=self._source,
            level=state.level,
            waiting=observation.waiting if observation else None,
            running=observation.running if observation else None,
            kv_usage=observation.kv_usage if observation else None,
            word_budget=self._app.word_budget(),
            energy_j=reading.energy_j,
            power_w=None if before is None else mean_power_w(before, reading),
            prompt_tokens_total=observation.prompt_tokens_total if observation else None,
            generated_tokens_total=observation.generated_tokens_total if observation else None,
            preemptions_total=observation.preemptions_total if observation else None,
            replica=replica,
        )


def part_of(reading: EnergyReading, replica: str) -> EnergyReading:
    """Return what a reading of several engines says of one."""
    return EnergyReading(reading.time_s, (reading.replicas_j or {}).get(replica))


def mean_power_w(before: EnergyReading, after: EnergyReading) -> float | None:
    """Return the mean power between two cumulative readings, in watts."""
    energy_j = difference(before.energy_j, after.energy_j)
    if energy_j is None or after.time_s <= before.time_s:
        return None
    return energy_j / (after.time_s - before.time_s)


async def read_at(
    meter: EnergyMeter, start_s: float, edges_s: Sequence[float]
) -> list[EnergyReading]:
    """Read the meter at each edge, given in seconds after `start_s`, in rising order."""
    loop = asyncio.get_running_loop()
    readings = []
    for edge_s in edges_s:
        await asyncio.sleep(max(0.0, start_s + edge_s - loop.time()))
        readings.append(await meter.read())
    return readings


def energy_windows(
    phases: Sequence[Phase],
    readings: Sequence[EnergyReading],
    report: EnergyReport,
    *,
    repeat: int,
    arm: str,
    start_s: float,
    incidents: Sequence[Incident] = (),
) -> list[EnergyWindow]:
    """Return a window for each phase, `drain`, and `total`: all but the warm-up.

    `readings` are those at each phase's start, at the schedule's end and at the episode's end.
    `incidents` make the windows that they touch doubtful.
    """
    names = [phase.name for phase in phases] + [DRAIN]
    pairs = [*zip(names, readings[:-1], readings[1:], strict=True)]
    counted = next((i for i, phase in enumerate(phases) if phase.name != WARMUP), 0)
    pairs.append(("total", readings[counted], readings[-1]))
    windows = []
    for name, before, after in pairs:
        energy_j = difference(before.energy_j, after.energy_j)
        sampled_j = difference(before.sampled_j, after.sampled_j)
        reason: str | None = before.reason or after.reason or report.reason or UNREAD
        if energy_j is not None:
            touching = [
                incident.described(start_s)
                for incident in incidents
                if incident.touches(before.time_s, after.time_s)
            ]
            reason = "; ".join(touching + doubts(before, after, energy_j, sampled_j)) or None
        if energy_j == 0 and report.source == "measured":
            # A device that is on draws power: this is a counter that did not count.
            energy_j, reason = None, STANDS_STILL
        windows.append(
            EnergyWindow(
                repeat=repeat,
                arm=arm,
                window=name,
                start_s=before.time_s - start_s,
                end_s=after.time_s - start_s,
                energy_j=energy_j,
                mean_power_w=None if energy_j is None else mean_power_w(before, after),
                sampled_j=sampled_j,
                source=None if energy_j is None else report.source,
                method=report.method,
                reason=reason,
                replicas_j=parts_between(before, after),
            )
        )
    return windows


def parts_between(before: EnergyReading, after: EnergyReading) -> dict[str, float | None] | None:
    """Return the joules of each of several engines between two readings."""
    if before.replicas_j is None or after.replicas_j is None:
        return None
    return {
        name: difference(before.replicas_j[name], joules)
        for name, joules in after.replicas_j.items()
    }


def difference(before: float | None, after: float | None) -> float | None:
    """Return after - before, or None where one is not known."""
    return None if before is None or after is None else after - before


def doubts(
    before: EnergyReading, after: EnergyReading, energy_j: float, sampled_j: float | None
) -> list[str]:
    """Return why to distrust the joules between two readings, as far as these tell."""
    found = []
    uncertain_s, length_s = before.uncertain_s + after.uncertain_s, after.time_s - before.time_s
    if uncertain_s > DISAGREEMENT * length_s:
        found.append(
            "a short window for a counter that moves in steps: its edges are uncertain by "
            f"{uncertain_s:.1g} s"
        )
    if (
        sampled_j is not None
        and energy_j > 0
        and abs(sampled_j - energy_j) > (DISAGREEMENT * energy_j)
    ):
        found.append(f"counter and power samples differ by {sampled_j / energy_j - 1:+.1%}")
    return found
