"""The processes of the server on this machine: which they are, and what they were told."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bellman.energy.base import LocalServer

INITIAL_NAMESPACE = "pid:[4026531836]"
"""Linux's PROC_PID_INIT_INO: the namespace whose process ids a driver outside containers names."""


@dataclass(frozen=True)
class ServerProcesses:
    """What is known of the server's processes; none of it where `unknown` says why."""

    process_ids: frozenset[int] = frozenset()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    unknown: str | None = None


def find(server: LocalServer | None) -> ServerProcesses:
    """Look for the server's processes now."""
    if server is None:
        return ServerProcesses(unknown="the server's process is not known here")
    root = server.process_id
    if root is None:
        root = listening_on(server.port)
        if root is None:
            remedy = "root sees those of other users"
            return ServerProcesses(
                unknown=f"no process is seen to listen on port {server.port} ({remedy})"
            )
    try:
        process = psutil.Process(root)
        family = [process, *process.children(recursive=True)]
    except psutil.Error as error:
        return ServerProcesses(unknown=f"the server's process {root}: {error}")
    return ServerProcesses(frozenset(one.pid for one in family), environment_of(process))


def listening_on(port: int | None) -> int | None:
    """Return the process that listens on a TCP port; None where none is seen to."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return None
    listening = (
        connection.pid
        for connection in connections
        if connection.status == psutil.CONN_LISTEN
        and connection.laddr
        and connection.laddr.port == port
    )
    return next((process_id for process_id in listening if process_id), None)


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
