"""Which cards to meter: those that the server's processes use, else those that they may use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

from bellman.energy.base import LocalServer
from bellman.energy.nvml_driver import Driver, DriverError
from bellman.energy.server_process import (
    ServerProcesses,
    find,
    in_initial_namespace,
    name_of,
)
from bellman.energy.visible_gpus import ORDER, VISIBLE, Gpu, refuse_mig, visible_gpus

BY_PROCESS = "the server's processes on them"
BY_VARIABLE = VISIBLE
ALL = "all cards of the machine"


@dataclass(frozen=True)
class Choice:
    """The cards to meter."""

    gpus: Sequence[Gpu]
    chosen_by: str
    """`BY_PROCESS`, `BY_VARIABLE` or `ALL`."""
    doubt: str | None
    """Why these may not be the server's cards, or not all of them."""
    environment: Mapping[str, str | None]
    """The server's variables that name cards."""
    others: Sequence[Gpu] = ()
    """Cards that are not metered."""


def choose(driver: Driver, server: LocalServer | None) -> Choice:
    """Pick the cards; raises `DriverError`, or `Ambiguous` where they cannot be measured apart."""
    gpus = driver.gpus()
    processes = find(server)
    told = {name: processes.environment.get(name) for name in (VISIBLE, ORDER)}
    on_card, refusal = processes_on(driver, gpus)
    used = [gpu for gpu in gpus if on_card.get(gpu.uuid, frozenset()) & processes.process_ids]
    # A number that names nobody here was given in another namespace, and so may the others be.
    strange = any(not psutil.pid_exists(number) for ids in on_card.values() for number in ids)
    if used:
        refuse_mig(used)
        doubt = None
        if strange and not in_initial_namespace():
            doubt = "the driver's process ids may be another namespace's (a container): "
            doubt += "the server's cards were told by them"
        elif refusal is not None:
            doubt = f"other cards may be in use too: {refusal}"
        others = [gpu for gpu in gpus if gpu not in used]
        return Choice(in_bus_order(used), BY_PROCESS, doubt, told, others)
    chosen = visible_gpus(gpus, processes.environment)
    chosen_by = BY_VARIABLE if VISIBLE in processes.environment else ALL
    trusted = refusal is None and not strange and in_initial_namespace()
    ours = server is not None and server.process_id is not None and processes.unknown is None
    if len(chosen) == 1 and ours and not trusted:
        return Choice(chosen, chosen_by, None, told)  # there is no other card that it could use
    why = processes.unknown or refusal
    if why is None:
        why = f"the driver names no process of the server, {processes.name}, on any card"
        why += "" if trusted else " (in a container it names those of the host, or none)"
    return Choice(chosen, chosen_by, _doubt(chosen, chosen_by, processes, why), told)


def processes_on(
    driver: Driver, gpus: Sequence[Gpu]
) -> tuple[Mapping[str, frozenset[int]], str | None]:
    """Return the process ids on each card by its UUID, and why some are missing."""
    found: dict[str, frozenset[int]] = {}
    refusal = None
    for gpu in gpus:
        try:
            found[gpu.uuid] = driver.processes(gpu)
        except DriverError as error:
            refusal = str(error)
    return found, refusal


def in_bus_order(gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return the cards in the order of the bus."""
    return sorted(gpus, key=lambda gpu: gpu.pci_bus_id)


def _doubt(chosen: Sequence[Gpu], chosen_by: str, processes: ServerProcesses, why: str) -> str:
    cards = "1 card" if len(chosen) == 1 else f"{len(chosen)} cards"
    which = f"{cards} (all, {VISIBLE} is not set)"
    if chosen_by == BY_VARIABLE:
        which = f"{cards} ({VISIBLE}={processes.environment[VISIBLE]})"
    return f"the joules are those of {which}, whether the server uses them or not: {why}"


class Neighbours:
    """Watches who else is on the metered cards, where the cards were told by the processes."""

    def __init__(self, driver: Driver, choice: Choice, server: LocalServer | None) -> None:
        self._driver = driver
        self._choice = choice
        self._server = server
        self._ours: frozenset[int] = frozenset()
        self._names: dict[int, str] = {}

    def seen(self) -> list[str]:
        """Return why the metered cards' energy is not the server's alone, or not all of its."""
        if self._choice.chosen_by != BY_PROCESS:
            return []
        metered, _ = processes_on(self._driver, self._choice.gpus)
        others, _ = processes_on(self._driver, self._choice.others)
        everyone = frozenset().union(*metered.values(), *others.values())
        if not everyone <= self._ours | self._names.keys():
            # The server may have new processes: only then its family is looked up again.
            self._ours |= find(self._server).process_ids
            self._names |= {number: name_of(number) for number in everyone - self._ours}
        found = [
            f"another process is on {uuid} and its energy counted in: {self._names[number]}"
            for uuid, numbers in metered.items()
            for number in sorted(numbers - self._ours)
        ]
        return found + [
            f"the server uses {uuid} too, whose energy is not counted"
            for uuid, numbers in others.items()
            if numbers & self._ours
        ]
