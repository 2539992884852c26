"""The energy of several engines: the sum, and each engine's own part of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from bellman.energy.base import EnergyMeter, EnergyReading, EnergyReport, Incident


class SummedMeter:
    """Reads one meter for each engine at the same instants; unknown where one of them is."""

    def __init__(self, meters: Mapping[str, EnergyMeter]) -> None:
        self._meters = meters

    async def start(self) -> None:
        """Begin to count, idle engines too."""
        for meter in self._meters.values():
            await meter.start()

    async def read(self) -> EnergyReading:
        """Return the sum, with every engine's own joules beside it."""
        readings = {name: await meter.read() for name, meter in self._meters.items()}
        first = next(iter(readings.values()))
        parts_j = {name: reading.energy_j for name, reading in readings.items()}
        known_j = [joules for joules in parts_j.values() if joules is not None]
        reasons = [f"{name}: {one.reason}" for name, one in readings.items() if one.reason]
        return replace(
            first,
            energy_j=sum(known_j) if len(known_j) == len(parts_j) else None,
            power_w=None,
            sampled_j=None,
            reason="; ".join(reasons) or None,
            replicas_j=parts_j,
        )

    async def stop(self) -> EnergyReport:
        """End all, and report each."""
        reports = {name: await meter.stop() for name, meter in self._meters.items()}
        first = next(iter(reports.values()))
        reasons = [f"{name}: {report.reason}" for name, report in reports.items() if report.reason]
        details: dict[str, object] = {name: asdict(report) for name, report in reports.items()}
        return EnergyReport(first.method, first.source, "; ".join(reasons) or None, details)

    def incidents(self) -> Sequence[Incident]:
        """Return those of all engines."""
        return [
            replace(incident, text=f"{name}: {incident.text}")
            for name, meter in self._meters.items()
            for incident in meter.incidents()
        ]
