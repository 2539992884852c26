"""The processes of the server on this machine: which they are, and what they were told."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bellman.energy.base import LocalServer

INITIAL_NAMESPACE = "pid:[4026531836]"
"""Linux's PROC_PID_INIT_INO: the namespace whose process ids a driver outside containers names."""


@dataclass(frozen=True)
class ServerProcesses:
    """What is known of the server's processes; none of it where `unknown` says why."""

    process_ids: frozenset[int] = frozenset()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    name: str | None = None
    """`123 (python)`, the process that was looked for."""
    unknown: str | None = None


def find(server: LocalServer | None) -> ServerProcesses:
    """Look for the server's processes now."""
    if server is None:
        return ServerProcesses(unknown="the server's process is not known here")
    ours = server.process_id
    roots = listening_on(server.port) if ours is None else [ours]
    if not roots:
        remedy = "root sees those of other users"
        return ServerProcesses(
            unknown=f"no process is seen to listen on port {server.port} ({remedy})"
        )
    try:
        processes = [psutil.Process(root) for root in roots]
        family = [one for each in processes for one in (each, *each.children(recursive=True))]
    except psutil.Error as error:
        return ServerProcesses(unknown=f"the server's process: {error}")
    return ServerProcesses(
        frozenset(one.pid for one in family), environment_of(processes[0]), name_of(roots[0])
    )


def listening_on(port: int | None) -> list[int]:
    """Return the processes that listen on a TCP port; of those that share a socket the parent."""
    try:
        found = {one.pid for one in listening(psutil.net_connections(kind="tcp"), port)}
        return sorted({first_listening(psutil.Process(number), port) for number in found if number})
    except (psutil.Error, OSError):
        return []


def first_listening(process: psutil.Process, port: int | None) -> int:
    """Return the farthest ancestor that has the socket, too: psutil names one holder of many."""
    holders = [process]
    for ancestor in process.parents():
        try:
            if listening(ancestor.net_connections(kind="tcp"), port):
                holders.append(ancestor)
        except psutil.Error:
            break
    return holders[-1].pid


def listening(connections: Iterable[Any], port: int | None) -> list[Any]:
    """Return those that listen on a port."""
    return [
        one
        for one in connections
        if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port
    ]


def environment_of(process: psutil.Process) -> Mapping[str, str]:
    """Return what a process was started with; our own variables where that may not be read."""
    try:
        return process.environ()
    except psutil.Error:
        return os.environ


def name_of(process_id: int) -> str:
    """Return `123 (python)`, or only the id of a process that is not seen from here."""
    try:
        return f"{process_id} ({psutil.Process(process_id).name()})"
    except psutil.Error:
        return str(process_id)


def in_initial_namespace(namespace: Path = Path("/proc/self/ns/pid")) -> bool:
    """Whether this process's ids are those of the machine: not in most containers."""
    try:
        return str(namespace.readlink()) == INITIAL_NAMESPACE
    except OSError:
        return False
